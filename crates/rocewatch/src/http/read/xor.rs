//! The chunks in which Prometheus keeps samples (`tsdb/chunkenc/xor.go`): the times by how their distance changes, the
//! values by the bits in which they differ from the one before. The scheme is that of "Gorilla: A Fast, Scalable,
//! In-Memory Time Series Database" (VLDB 2015), 4.1.

/// Samples of a chunk, as Prometheus itself has them.
pub(crate) const FULL: u16 = 120;

/// What a change of distance between two times takes, the least first: a mark of so many bits, and the number.
const CHANGES: [(u64, u8, u8); 3] = [(0b10, 2, 14), (0b110, 3, 17), (0b1110, 4, 20)];

/// A chunk that grows.
#[derive(Clone, Debug)]
pub(crate) struct XorChunk {
    bits: Bits,
    count: u16,
    first: i64,
    last: i64,
    distance: i64,
    value: u64,
    /// The bits in which a value may differ so that no new borders are told: zeros before and behind them.
    borders: Option<(u8, u8)>,
}

impl XorChunk {
    /// A chunk without a sample.
    pub(crate) fn new() -> Self {
        Self {
            // The first two bytes are the number of samples.
            bits: Bits {
                bytes: vec![0, 0],
                free: 0,
            },
            count: 0,
            first: 0,
            last: 0,
            distance: 0,
            value: 0,
            borders: None,
        }
    }

    /// Samples in it.
    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    /// Times of the first and the last sample.
    pub(crate) fn times(&self) -> (i64, i64) {
        (self.first, self.last)
    }

    /// The chunk as it is sent.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.bits.bytes;
        bytes[..2].copy_from_slice(&self.count.to_be_bytes());
        bytes
    }

    /// Adds a value at a time that is later than the last.
    pub(crate) fn push(&mut self, time: i64, value: f64) {
        let value = value.to_bits();
        let distance = time.wrapping_sub(self.last);
        match self.count {
            0 => {
                self.first = time;
                self.bits.put_varint(zigzag(time));
                self.bits.put(value, 64);
            }
            1 => {
                self.bits.put_varint(distance.cast_unsigned());
                self.put_value(value);
            }
            _ => {
                self.put_change(distance.wrapping_sub(self.distance));
                self.put_value(value);
            }
        }
        if self.count > 0 {
            self.distance = distance;
        }
        self.last = time;
        self.value = value;
        self.count += 1;
    }

    fn put_change(&mut self, change: i64) {
        if change == 0 {
            return self.bits.put(0, 1);
        }
        let fits = CHANGES.into_iter().find(|(_, _, bits)| {
            let half = 1_i64 << (bits - 1);
            (1 - half..=half).contains(&change)
        });
        let (mark, mark_bits, bits) = fits.unwrap_or((0b1111, 4, 64));
        self.bits.put(mark, mark_bits);
        self.bits.put(change.cast_unsigned(), bits);
    }

    fn put_value(&mut self, value: u64) {
        let differ = value ^ self.value;
        if differ == 0 {
            return self.bits.put(0, 1);
        }
        // Five bits tell the leading zeros.
        let leading = differ.leading_zeros().min(31);
        let (leading, trailing) = (small(leading), small(differ.trailing_zeros()));
        match self.borders {
            Some((before, behind)) if leading >= before && trailing >= behind => {
                self.bits.put(0b10, 2);
                self.bits.put(differ >> behind, 64 - before - behind);
            }
            _ => {
                let significant = 64 - leading - trailing;
                self.borders = Some((leading, trailing));
                self.bits.put(0b11, 2);
                self.bits.put(leading.into(), 5);
                // There are never none, so none stands for 64.
                self.bits.put(u64::from(significant) & 63, 6);
                self.bits.put(differ >> trailing, significant);
            }
        }
    }
}

/// A number of bits of 64.
fn small(bits: u32) -> u8 {
    u8::try_from(bits).unwrap_or(64)
}

/// As Go's `binary.PutVarint` has signed numbers.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// Bits, the highest of each byte first.
#[derive(Clone, Debug)]
struct Bits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are not taken.
    free: u8,
}

impl Bits {
    /// Adds the lowest `bits` of a number.
    fn put(&mut self, number: u64, bits: u8) {
        let mut left = bits;
        while left > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let taken = left.min(self.free);
            let part = (number >> (left - taken)) & ((1 << taken) - 1);
            let last = self.bytes.len() - 1;
            // Eight bits at most.
            #[allow(clippy::cast_possible_truncation)]
            let part = (part as u8) << (self.free - taken);
            self.bytes[last] |= part;
            self.free -= taken;
            left -= taken;
        }
    }

    fn put_varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.put((number & 0x7f) | 0x80, 8);
            number >>= 7;
        }
        self.put(number, 8);
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::read;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn chunk(samples: &[(i64, u64)]) -> XorChunk {
        let mut chunk = XorChunk::new();
        for (time, value) in samples {
            chunk.push(*time, f64::from_bits(*value));
        }
        chunk
    }

    fn values() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            Just(0x7ff0_0000_0000_0002),
            any::<u64>(),
            (0_u32..1000).prop_map(|number| f64::from(number).to_bits()),
        ]
    }

    fn distances() -> impl Strategy<Value = i64> {
        prop_oneof![
            Just(1_000),
            990_i64..1_010,
            1_i64..20_000,
            1_i64..2_000_000,
            1_i64..1 << 55
        ]
    }

    proptest! {
        #[test]
        fn samples_come_back(start in -1_i64 << 60..1 << 60, steps in vec((distances(), values()), 0..120)) {
            let mut time = start;
            let samples: Vec<_> = steps.into_iter().map(|(distance, value)| {
                time += distance;
                (time, value)
            }).collect();
            let made = chunk(&samples);
            if let (Some(first), Some(last)) = (samples.first(), samples.last()) {
                prop_assert_eq!(made.times(), (first.0, last.0));
            }
            prop_assert_eq!(read(&made.into_bytes()), samples);
        }
    }

    #[test]
    fn each_number_of_bits_is_used_to_its_ends() {
        let mut samples = vec![(0, 0), (1 << 21, 0)];
        let (mut time, mut distance) = (1_i64 << 21, 1_i64 << 21);
        for bits in [14, 17, 20] {
            let half = 1_i64 << (bits - 1);
            for change in [half, 1 - half, half + 1, -half] {
                distance += change;
                time += distance;
                samples.push((time, 0));
            }
        }
        assert_eq!(read(&chunk(&samples).into_bytes()), samples);
    }

    /// A counter that stands still, once a second, takes a quarter of a byte a sample.
    #[test]
    fn a_chunk_is_small() {
        let samples: Vec<_> = (0..i64::from(FULL)).map(|second| (second * 1_000, 0)).collect();
        assert_eq!(
            chunk(&samples).into_bytes().len(),
            2 + 1 + 8 + 2 + (2 * 118_usize + 1).div_ceil(8)
        );
    }
}
