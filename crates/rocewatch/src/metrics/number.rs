//! Numbers as text, without allocation.

use catalog::Scale;
use std::io::Write as _;

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
                    let mut text = Vec::new();
                    self.write(&mut text);
                    let text = std::str::from_utf8(&text).unwrap_or_default();
                    text.parse().unwrap_or(f64::NAN)
                }
            },
        }
    }

    /// Writes the number. Counters are exact to the last digit, however large: no detour by floating point.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Scaled(value, scale) => write_scaled(value, scale, out),
            Self::Float(value) if value.is_nan() => out.extend_from_slice(b"NaN"),
            Self::Float(value) if value.is_infinite() => {
                out.extend_from_slice(if value > 0.0 { b"+Inf" } else { b"-Inf" });
            }
            // What every series of information shows.
            Self::Float(1.0) => out.push(b'1'),
            Self::Float(value) => {
                let written = write!(out, "{value}");
                debug_assert!(written.is_ok(), "writing to memory cannot fail");
            }
        }
    }
}

fn write_scaled(value: u64, scale: Scale, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    match (value.checked_mul(scale.multiply.into()), scale.decimals) {
        // Nearly all: dividing 128 bits takes several times as long as all the rest.
        (Some(value), 0) => out.extend_from_slice(digits.format(value).as_bytes()),
        _ => write_decimal(
            u128::from(value) * u128::from(scale.multiply),
            scale.decimals,
            out,
        ),
    }
}

fn write_decimal(value: u128, decimals: u8, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let unit = 10u128.pow(u32::from(decimals));
    out.extend_from_slice(digits.format(value / unit).as_bytes());
    let fraction = value % unit;
    if fraction == 0 {
        return;
    }
    let text = digits.format(fraction).as_bytes();
    out.push(b'.');
    out.extend(std::iter::repeat_n(b'0', usize::from(decimals) - text.len()));
    let end = text
        .iter()
        .rposition(|digit| *digit != b'0')
        .map_or(0, |last| last + 1);
    out.extend_from_slice(&text[..end]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(number: Number) -> String {
        let mut out = Vec::new();
        number.write(&mut out);
        String::from_utf8(out).unwrap()
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
