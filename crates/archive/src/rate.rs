//! Rates and readings to three digits: the extremes inside a second.
//!
//! An extreme is kept with 11 significant bits, the lower one rounded down and the upper one up, so that the true
//! extremes always lie between the two, by less than 0.1 % of their size. In full, they would take more room than the
//! counters themselves, to say nothing more.

use std::num::NonZeroU64;

/// Values below this are exact.
const EXACT: u64 = 1 << 11;
/// The largest exponent: 11 bits with 53 behind them are 64.
const MOST: u64 = 53;

/// A coarse number. Codes are ordered as the numbers are; none is zero, which stands for no number at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Code(NonZeroU64);

impl Code {
    /// The largest coarse number that is at most `value`.
    pub(crate) fn down(value: u64) -> Self {
        let code = if value < EXACT {
            value
        } else {
            let exponent = u64::from(53 - value.leading_zeros());
            (exponent << 10) + (value >> exponent)
        };
        Self(NonZeroU64::MIN.saturating_add(code))
    }

    /// The smallest coarse number that is at least `value`.
    pub(crate) fn up(value: u64) -> Self {
        let down = Self::down(value);
        if down.value() < value {
            Self(down.0.saturating_add(1))
        } else {
            down
        }
    }

    /// The number; what exceeds 64 bits is the largest of them.
    pub(crate) fn value(self) -> u64 {
        let code = self.0.get() - 1;
        if code < EXACT {
            return code;
        }
        let exponent = (code >> 10) - 1;
        if exponent > MOST {
            return u64::MAX;
        }
        (code - (exponent << 10)) << exponent
    }

    /// As it is stored.
    pub(crate) fn stored(code: Option<Self>) -> u64 {
        code.map_or(0, |code| code.0.get())
    }

    /// From what is stored.
    pub(crate) fn from_stored(stored: u64) -> Option<Self> {
        NonZeroU64::new(stored).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_numbers_are_exact() {
        for value in 0..=4096 {
            assert!(Code::down(value).value() <= value);
            if value <= EXACT || value % 2 == 0 {
                assert_eq!(
                    (Code::down(value).value(), Code::up(value).value()),
                    (value, value)
                );
            }
        }
    }

    #[test]
    fn the_largest_numbers_are_enclosed() {
        assert_eq!(Code::down(u64::MAX).value(), 0xffe0_0000_0000_0000);
        assert_eq!(Code::up(u64::MAX).value(), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_number_lies_between_its_codes(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let (low, high) = (Code::down(value).value(), Code::up(value).value());
            prop_assert!(low <= value && value <= high);
            prop_assert!(high - low <= value / 1024);
        }

        #[test]
        fn codes_are_ordered_as_numbers(a: u64, b: u64, shift in 0_u32..64) {
            let (a, b) = ((a >> shift).min(b), (a >> shift).max(b));
            prop_assert!(Code::down(a) <= Code::down(b));
            prop_assert!(Code::up(a) <= Code::up(b));
        }

        #[test]
        fn anything_stored_is_a_number_or_none(stored: u64) {
            let code = Code::from_stored(stored);
            prop_assert_eq!(Code::stored(code), stored);
            let _ = code.map(Code::value);
        }
    }
}
