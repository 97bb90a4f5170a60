//! Numbers as the kernel prints them into files.

/// Why the content of a file is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotANumber {
    /// Nothing, or a newline alone.
    #[error("is empty")]
    Empty,
    /// `N/A (no PMA)`: the device has no performance management (drivers/infiniband/core/sysfs.c before 4.16).
    #[error("says that the device has no such counter")]
    Unsupported,
    /// A minus sign and digits.
    #[error("is negative")]
    Negative,
    /// More than 64 bits.
    #[error("does not fit into 64 bits")]
    Overflow,
    /// Anything else.
    #[error("holds no number")]
    Text,
}

impl NotANumber {
    /// The word that labels carry.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Unsupported => "unsupported",
            Self::Negative => "negative",
            Self::Overflow => "overflow",
            Self::Text => "not_a_number",
        }
    }
}

/// A decimal number: digits, then at most one newline.
pub(crate) fn decimal(content: &[u8]) -> Result<u64, NotANumber> {
    digits(line(content), 10)
}

/// A hexadecimal number as `%#x` prints it.
pub(crate) fn hexadecimal(content: &[u8]) -> Result<u64, NotANumber> {
    let line = line(content);
    match line.strip_prefix(b"0x") {
        Some(number) if !number.is_empty() => digits(number, 16),
        Some(_) => Err(NotANumber::Text),
        // `%#x` prints zero without a prefix.
        None => digits(line, 10).and_then(|number| if number == 0 { Ok(0) } else { Err(NotANumber::Text) }),
    }
}

fn line(content: &[u8]) -> &[u8] {
    content.strip_suffix(b"\n").unwrap_or(content)
}

#[inline]
fn digits(line: &[u8], radix: u32) -> Result<u64, NotANumber> {
    if line.is_empty() {
        return Err(NotANumber::Empty);
    }
    // Wrapping, since text that is no number is told before a number that is too large.
    let mut number = 0u64;
    for &byte in line {
        let Some(digit) = char::from(byte).to_digit(radix) else {
            return Err(text(line, radix));
        };
        number = number.wrapping_mul(radix.into()).wrapping_add(digit.into());
    }
    // So few digits of either radix always fit.
    if line.len() <= SURE {
        Ok(number)
    } else {
        checked(line, radix)
    }
}

/// The most digits that fit into 64 bits whatever they are, of radix 10 and of 16.
const SURE: usize = 16;

/// The number of many digits.
#[cold]
fn checked(line: &[u8], radix: u32) -> Result<u64, NotANumber> {
    let text = std::str::from_utf8(line).map_err(|_| NotANumber::Text)?;
    u64::from_str_radix(text, radix).map_err(|_| NotANumber::Overflow)
}

/// What it is if it is no number.
#[cold]
fn text(line: &[u8], radix: u32) -> NotANumber {
    let is_digit = |&byte: &u8| char::from(byte).is_digit(radix);
    match line {
        [b'-', rest @ ..] if !rest.is_empty() && rest.iter().all(is_digit) => NotANumber::Negative,
        [b'N', b'/', b'A', ..] => NotANumber::Unsupported,
        _ => NotANumber::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_number_says_why() {
        let cases: &[(&[u8], NotANumber)] = &[
            (b"", NotANumber::Empty),
            (b"\n", NotANumber::Empty),
            (b"N/A (no PMA)\n", NotANumber::Unsupported),
            (b"-1\n", NotANumber::Negative),
            (b"18446744073709551616\n", NotANumber::Overflow),
            (b"99999999999999999999999999\n", NotANumber::Overflow),
            (b"-\n", NotANumber::Text),
            (b"+1\n", NotANumber::Text),
            (b" 1\n", NotANumber::Text),
            (b"1 \n", NotANumber::Text),
            (b"1\n\n", NotANumber::Text),
            (b"1\0", NotANumber::Text),
            (b"0x10\n", NotANumber::Text),
            (b"4: ACTIVE\n", NotANumber::Text),
            (b"\xff\n", NotANumber::Text),
        ];
        for (content, expected) in cases {
            assert_eq!(decimal(content), Err(*expected), "{}", content.escape_ascii());
        }
    }

    #[test]
    fn the_largest_number_fits() {
        assert_eq!(decimal(b"18446744073709551615\n"), Ok(u64::MAX));
        assert_eq!(hexadecimal(b"0xffffffffffffffff"), Ok(u64::MAX));
        assert_eq!(hexadecimal(b"0x10000000000000000"), Err(NotANumber::Overflow));
    }

    #[test]
    fn hexadecimal_wants_its_prefix() {
        assert_eq!(hexadecimal(b"0x1003\n"), Ok(0x1003));
        assert_eq!(hexadecimal(b"0\n"), Ok(0));
        assert_eq!(hexadecimal(b"1003\n"), Err(NotANumber::Text));
        assert_eq!(hexadecimal(b"0x\n"), Err(NotANumber::Text));
    }

    proptest! {
        #[test]
        fn what_the_kernel_prints_is_read_back(number: u64) {
            prop_assert_eq!(decimal(format!("{number}\n").as_bytes()), Ok(number));
            prop_assert_eq!(decimal(number.to_string().as_bytes()), Ok(number));
            prop_assert_eq!(hexadecimal(format!("{number:#x}\n").as_bytes()), Ok(number));
        }

        #[test]
        fn negative_numbers_are_told_as_such(number in i64::MIN..0) {
            prop_assert_eq!(decimal(number.to_string().as_bytes()), Err(NotANumber::Negative));
        }

        #[test]
        fn only_digits_are_a_number(content: Vec<u8>) {
            let digits = content.strip_suffix(b"\n").unwrap_or(&content);
            if decimal(&content).is_ok() {
                prop_assert!(!digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
            }
            let _ = hexadecimal(&content);
        }
    }
}
