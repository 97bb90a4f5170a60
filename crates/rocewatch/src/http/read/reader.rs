//! A reader of chunks, for tests: by the words of `tsdb/docs/format/chunks.md` of Prometheus, and none of the encoder's.

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn bits(&mut self, count: u8) -> u64 {
        (0..count).fold(0, |number, _| {
            let bit = self.bytes[self.at / 8] >> (7 - self.at % 8) & 1;
            self.at += 1;
            number << 1 | u64::from(bit)
        })
    }

    fn varint(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = self.bits(8);
            number |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    /// A number of so many bits, of which the upper half stands for those below zero.
    fn change(&mut self) -> i64 {
        let ones = (0..4).take_while(|_| self.bits(1) == 1).count();
        let bits = [0, 14, 17, 20, 64][ones];
        let number = self.bits(bits).cast_signed();
        if bits == 0 || bits == 64 || number <= 1 << (bits - 1) {
            number
        } else {
            number - (1 << bits)
        }
    }
}

/// The samples of a chunk, read by the words of `tsdb/docs/format/chunks.md` of Prometheus.
pub(crate) fn read(bytes: &[u8]) -> Vec<(i64, u64)> {
    let count = u16::from_be_bytes([bytes[0], bytes[1]]);
    let mut reader = Reader {
        bytes: &bytes[2..],
        at: 0,
    };
    let (mut samples, mut distance, mut borders) = (Vec::new(), 0_i64, (0, 0));
    for at in 0..count {
        let Some((before, value)) = samples.last().copied() else {
            let time = reader.varint();
            let time = (time >> 1).cast_signed() ^ -(time & 1).cast_signed();
            samples.push((time, reader.bits(64)));
            continue;
        };
        distance = if at == 1 {
            reader.varint().cast_signed()
        } else {
            distance.wrapping_add(reader.change())
        };
        let mut differ = 0;
        if reader.bits(1) == 1 {
            if reader.bits(1) == 1 {
                let leading = u8::try_from(reader.bits(5)).unwrap();
                let significant = match u8::try_from(reader.bits(6)).unwrap() {
                    0 => 64,
                    some => some,
                };
                borders = (leading, 64 - leading - significant);
            }
            differ = reader.bits(64 - borders.0 - borders.1) << borders.1;
        }
        samples.push((i64::wrapping_add(before, distance), value ^ differ));
    }
    samples
}
