//! One column of a block as bytes.
//!
//! Counters grow by about as much from one row to the next, so a column is written as what differs from a forecast:
//! that the next value equals the last (`Delta`), or that it grows as it last grew (`Growth`). The differences are zigzag
//! numbers, written byte by byte through the column: all the highest bytes first, the lowest last. The high bytes hardly
//! vary and the low ones are noise; apart from each other a general compressor does far better with them than with
//! varints. `docs/decisions/0005-archive-encoding.md` has the figures.

use crate::bytes::{Input, Malformed, put_varint, unzigzag, zigzag};

/// What a value is expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forecast {
    /// The value before it.
    Delta,
    /// The value before it plus the difference between the two before it.
    Growth,
}

impl Forecast {
    /// Values at the beginning that are written as they are.
    fn seeds(self) -> usize {
        match self {
            Self::Delta => 1,
            Self::Growth => 2,
        }
    }

    fn of(self, before: u64, last: u64) -> u64 {
        match self {
            Self::Delta => last,
            Self::Growth => last.wrapping_add(last.wrapping_sub(before)),
        }
    }

    fn differences(self, values: &[u64]) -> impl Iterator<Item = u64> + '_ {
        (self.seeds()..values.len()).map(move |i| {
            let before = if i >= 2 { values[i - 2] } else { 0 };
            zigzag(values[i].wrapping_sub(self.of(before, values[i - 1])))
        })
    }

    /// Bits of the differences taken together, and the bytes that the largest of them needs.
    fn cost(self, values: &[u64]) -> (u64, u8) {
        let (mut bits, mut all) = (0, 0);
        for difference in self.differences(values) {
            bits += u64::from(64 - difference.leading_zeros());
            all |= difference;
        }
        (bits, 8 - u8::try_from(all.leading_zeros() / 8).unwrap_or(8))
    }
}

/// Appends a column of at least one value.
pub(crate) fn encode(values: &[u64], out: &mut Vec<u8>) {
    let (delta, growth) = (Forecast::Delta.cost(values), Forecast::Growth.cost(values));
    let (forecast, bytes) = if values.len() > 2 && growth.0 < delta.0 {
        (Forecast::Growth, growth.1)
    } else {
        (Forecast::Delta, delta.1)
    };
    out.push(bytes << 1 | u8::from(forecast == Forecast::Growth));
    let mut last = 0;
    for seed in values.iter().take(forecast.seeds()) {
        put_varint(out, zigzag(seed.wrapping_sub(last)));
        last = *seed;
    }
    let width = usize::from(bytes);
    let start = out.len();
    let differences = values.len().saturating_sub(forecast.seeds());
    out.resize(start + differences * width, 0);
    let planes = &mut out[start..];
    for (i, difference) in forecast.differences(values).enumerate() {
        for (plane, byte) in difference.to_be_bytes()[8 - width..].iter().enumerate() {
            planes[plane * differences + i] = *byte;
        }
    }
}

/// Reads a column of `rows` values.
pub(crate) fn decode(bytes: &[u8], rows: usize) -> Result<Vec<u64>, Malformed> {
    let mut input = Input::new(bytes);
    let tag = input.u8()?;
    let width = usize::from(tag >> 1);
    if width > 8 {
        return Err(Malformed("a column is wider than 64 bits"));
    }
    let forecast = if tag & 1 == 0 {
        Forecast::Delta
    } else {
        Forecast::Growth
    };
    let mut values = Vec::with_capacity(rows);
    let mut last = 0_u64;
    for _ in 0..forecast.seeds().min(rows) {
        last = last.wrapping_add(unzigzag(input.varint()?));
        values.push(last);
    }
    let differences = rows.saturating_sub(forecast.seeds());
    let planes = input.take(differences * width)?;
    if !input.is_empty() {
        return Err(Malformed("a column has more than its rows"));
    }
    if width == 0 && forecast == Forecast::Delta {
        // Most columns stand still.
        values.resize(rows, last);
        return Ok(values);
    }
    values.resize(rows, 0);
    let (seeds, rest) = values.split_at_mut(rows - differences);
    for plane in planes.chunks_exact(differences.max(1)) {
        for (value, byte) in rest.iter_mut().zip(plane) {
            *value = *value << 8 | u64::from(*byte);
        }
    }
    let mut step = match seeds {
        [before, last] => last.wrapping_sub(*before),
        _ => 0,
    };
    for value in rest {
        let difference = unzigzag(*value);
        step = match forecast {
            Forecast::Delta => difference,
            Forecast::Growth => step.wrapping_add(difference),
        };
        last = last.wrapping_add(step);
        *value = last;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ABSENT;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn round_trip(values: &[u64]) -> usize {
        let mut bytes = Vec::new();
        encode(values, &mut bytes);
        assert_eq!(decode(&bytes, values.len()).as_deref(), Ok(values));
        bytes.len()
    }

    #[test]
    fn a_column_that_stands_still_or_grows_evenly_is_a_few_bytes() {
        assert_eq!(round_trip(&[7; 600]), 2);
        let even: Vec<u64> = (0..600).map(|i| i * 1_000_000_000).collect();
        assert!(round_trip(&even) < 10);
    }

    #[test]
    fn wraps_resets_and_absence_come_back() {
        round_trip(&[0]);
        round_trip(&[ABSENT]);
        round_trip(&[u64::MAX - 1, 0, 5, ABSENT, 6, 0, u64::MAX - 1, 1 << 63]);
        round_trip(&[u64::from(u32::MAX), 3, 9]);
    }

    /// Columns as counters are: they grow, and now and then something happens to them.
    fn counter() -> impl Strategy<Value = Vec<u64>> {
        let step = prop_oneof![
            6 => (0_u64..1 << 40).prop_map(Some),
            6 => Just(Some(0)),
            1 => Just(None),
        ];
        (any::<u64>(), vec(step, 0..300)).prop_map(|(first, steps)| {
            let mut now = first;
            let mut values = vec![first];
            for step in steps {
                now = step.map_or(0, |step| now.wrapping_add(step));
                values.push(if step.is_none() { ABSENT } else { now });
            }
            values
        })
    }

    proptest! {
        #[test]
        fn any_column_comes_back(values in vec(any::<u64>(), 1..300)) {
            round_trip(&values);
        }

        #[test]
        fn any_counter_comes_back(values in counter()) {
            round_trip(&values);
        }

        #[test]
        fn any_bytes_are_a_column_or_refused(bytes: Vec<u8>, rows in 0_usize..400) {
            if let Ok(values) = decode(&bytes, rows) {
                prop_assert_eq!(values.len(), rows);
            }
        }
    }
}
