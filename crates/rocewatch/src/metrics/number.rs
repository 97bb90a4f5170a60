//! Numbers as text, without allocation.

use catalog::Scale;
use std::fmt::{self, Write as _};

/// What text is written to: a page is bytes, which need no look at where characters begin.
pub(crate) trait Out {
    fn push_str(&mut self, text: &str);
}

impl Out for Vec<u8> {
    fn push_str(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

impl Out for String {
    fn push_str(&mut self, text: &str) {
        String::push_str(self, text);
    }
}

/// For what only the standard library can spell.
struct Formatted<'a, O>(&'a mut O);

impl<O: Out> fmt::Write for Formatted<'_, O> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        Ok(())
    }
}

/// A value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// A counter's value in the driver's unit, and the way to the base unit.
    Scaled(u64, Scale),
    /// A ratio or a time.
    Float(f64),
}

impl Number {
    /// A plain count.
    pub(crate) fn count(value: u64) -> Self {
        Self::Scaled(value, Scale::ONE)
    }

    /// A time in nanoseconds, shown in seconds.
    pub(crate) fn nanoseconds(value: u64) -> Self {
        let scale = Scale {
            multiply: 1,
            decimals: 9,
        };
        Self::Scaled(value, scale)
    }

    /// The number as whoever reads the text takes it: the nearest there is.
    pub(crate) fn nearest(self) -> f64 {
        // Up to here both sides of the division are exact, and so is its result but for one rounding.
        const EXACT: u64 = 1 << 53;
        match self {
            Self::Float(value) => value,
            Self::Scaled(value, scale) => match value.checked_mul(scale.multiply.into()) {
                Some(product) if product <= EXACT && scale.decimals <= 22 => {
                    product as f64 / 10f64.powi(scale.decimals.into())
                }
                _ => {
                    let mut text = String::new();
                    self.write(&mut text);
                    text.parse().unwrap_or(f64::NAN)
                }
            },
        }
    }

    /// Writes the number. Counters are exact to the last digit, however large: no detour by floating point.
    pub(crate) fn write(self, out: &mut impl Out) {
        match self {
            Self::Scaled(value, scale) => write_scaled(value, scale, out),
            Self::Float(value) if value.is_nan() => out.push_str("NaN"),
            Self::Float(value) if value.is_infinite() => {
                out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
            }
            Self::Float(value) => {
                if let Some(value) = whole(value) {
                    return write_scaled(value, Scale::ONE, out);
                }
                let written = write!(Formatted(out), "{value}");
                debug_assert!(written.is_ok(), "writing to memory cannot fail");
            }
        }
    }
}

/// The integer that has the same digits, which are found several times faster.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is neither negative nor larger
fn whole(value: f64) -> Option<u64> {
    let fits = value.is_sign_positive() && value < 9_007_199_254_740_992.0;
    (fits && value.fract() == 0.0).then_some(value as u64)
}

fn write_scaled(value: u64, scale: Scale, out: &mut impl Out) {
    let mut digits = itoa::Buffer::new();
    let unit = || 10u64.pow(scale.decimals.into());
    match value.checked_mul(scale.multiply.into()) {
        Some(value) if scale.decimals == 0 => out.push_str(digits.format(value)),
        Some(value) => {
            let unit = unit();
            out.push_str(digits.format(value / unit));
            write_fraction(value % unit, scale.decimals, out);
        }
        // To divide 128 bits takes several times as long as all the rest, and nearly no value needs them.
        None => {
            let (value, unit) = (u128::from(value) * u128::from(scale.multiply), u128::from(unit()));
            out.push_str(digits.format(value / unit));
            write_fraction(value % unit, scale.decimals, out);
        }
    }
}

/// What stands behind the point, if anything does.
fn write_fraction(fraction: impl itoa::Integer, decimals: u8, out: &mut impl Out) {
    let mut digits = itoa::Buffer::new();
    let text = digits.format(fraction);
    if text == "0" {
        return;
    }
    out.push_str(".");
    for _ in text.len()..usize::from(decimals) {
        out.push_str("0");
    }
    out.push_str(text.trim_end_matches('0'));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(number: Number) -> String {
        let mut out = String::new();
        number.write(&mut out);
        out
    }

    fn scaled(value: u64, multiply: u32, decimals: u8) -> String {
        text(Number::Scaled(value, Scale { multiply, decimals }))
    }

    #[test]
    fn counters_are_exact_to_the_last_digit() {
        assert_eq!(scaled(0, 1, 6), "0");
        assert_eq!(scaled(1, 1, 6), "0.000001");
        assert_eq!(scaled(1_500_000, 1, 6), "1.5");
        assert_eq!(scaled(12_000_000, 1, 6), "12");
        assert_eq!(scaled(u64::MAX, 1, 6), "18446744073709.551615");
        assert_eq!(scaled(u64::MAX, 4, 0), "73786976294838206460");
        assert_eq!(scaled(35, 1, 2), "0.35");
    }

    #[test]
    fn floats_are_spelled_as_prometheus_reads_them() {
        assert_eq!(text(Number::Float(0.25)), "0.25");
        assert_eq!(text(Number::Float(1.0)), "1");
        assert_eq!(text(Number::Float(9_007_199_254_740_991.0)), "9007199254740991");
        assert_eq!(text(Number::Float(f64::NAN)), "NaN");
        assert_eq!(text(Number::Float(f64::INFINITY)), "+Inf");
        assert_eq!(text(Number::Float(f64::NEG_INFINITY)), "-Inf");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value: u64, decimals in 0u8..=6) {
            let read: f64 = scaled(value, 1, decimals).parse().unwrap();
            let right = Scale { multiply: 1, decimals }.apply(value as f64);
            prop_assert!((read - right).abs() <= right * 1e-15);
        }

        #[test]
        fn the_nearest_is_what_a_reader_of_the_text_takes(value: u64, multiply in 1u32..=125_000, decimals in 0u8..=9) {
            let read: f64 = scaled(value, multiply, decimals).parse().unwrap();
            let nearest = Number::Scaled(value, Scale { multiply, decimals }).nearest();
            prop_assert_eq!(nearest.to_bits(), read.to_bits());
        }

        #[test]
        fn floats_read_back_exactly(value: f64) {
            let read: f64 = text(Number::Float(value)).parse().unwrap();
            prop_assert!(read.total_cmp(&value).is_eq() || (read.is_nan() && value.is_nan()));
        }
    }
}
