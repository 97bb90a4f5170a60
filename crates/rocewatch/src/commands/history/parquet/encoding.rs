//! The two encodings of values that are used: plain, and runs.
//!
//! Source: `Encodings.md` of Apache Parquet.

/// LEB128.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Numbers most of which are like the one before.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// What, and how often.
    runs: Vec<(u32, u64)>,
}

impl Runs {
    pub(super) fn push(&mut self, value: u32, times: u64) {
        match self.runs.last_mut().filter(|(last, _)| *last == value) {
            Some((_, before)) => *before += times,
            None => self.runs.push((value, times)),
        }
    }

    /// The hybrid encoding of numbers of so many bits, without its half that packs bits.
    pub(super) fn encode(&self, bits: u32, out: &mut Vec<u8>) {
        let bytes = bits.div_ceil(8) as usize;
        for (value, times) in self.runs.iter().filter(|(_, times)| *times > 0) {
            varint(times << 1, out);
            out.extend_from_slice(&value.to_le_bytes()[..bytes]);
        }
    }
}

/// Bits that numbers below `count` take, 1 at least.
pub(super) fn bits(count: usize) -> u32 {
    (usize::BITS - count.saturating_sub(1).leading_zeros()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_specified() {
        let mut runs = Runs::default();
        runs.push(4, 60);
        runs.push(4, 40);
        runs.push(300, 1);
        let mut out = Vec::new();
        runs.encode(9, &mut out);
        // 100 times 4: 100 << 1 = 200 in two bytes, then the value in two.
        assert_eq!(out, [0xc8, 0x01, 4, 0, 2, 0x2c, 0x01]);
    }

    #[test]
    fn indices_take_as_many_bits_as_the_highest() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(bits), [1, 1, 1, 2, 2, 3, 8, 9]);
    }
}
