//! Numbers and texts as bytes, and back from bytes that nobody vouches for.

/// Bytes that are not what they should be, and in what way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

type Result<T> = std::result::Result<T, Malformed>;

/// What a varint takes at most: 64 bits in groups of 7.
const VARINT: u32 = 10;

/// Small magnitudes of either sign as small numbers: 0, -1, 1, -2 become 0, 1, 2, 3. [`model::ABSENT`], which is -1,
/// becomes 1.
pub(crate) fn zigzag(value: u64) -> u64 {
    (value << 1) ^ (value >> 63).wrapping_neg()
}

/// The inverse of [`zigzag`].
pub(crate) fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Appends a number in groups of 7 bits, the lowest first (LEB128).
// The casts keep the low bits, which is what is meant.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length or count as a varint.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    put_varint(out, count as u64);
}

/// Appends a length and that many bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Bytes that are read from front to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_le_bytes)
    }

    pub(crate) fn id(&mut self) -> Result<[u8; 16]> {
        self.array()
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for group in 0..VARINT {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            let placed = bits << (7 * group);
            if placed >> (7 * group) != bits {
                return Err(Malformed("a number exceeds 64 bits"));
            }
            value |= placed;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("a number exceeds 64 bits"))
    }

    /// A count of things of which each takes at least one byte of what is left, so that nothing larger than the input
    /// is ever reserved for them.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = usize::try_from(self.varint()?).map_err(|_| Malformed("a count is impossible"))?;
        if count > self.0.len() {
            return Err(Malformed("a count exceeds what is there"));
        }
        Ok(count)
    }

    /// A length and that many bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut input = Input::new(&out);
            prop_assert_eq!(input.varint(), Ok(value));
            prop_assert!(input.is_empty());
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut input = Input::new(&bytes);
            while input.varint().is_ok() {}
            let mut input = Input::new(&bytes);
            while input.text().is_ok() {}
        }
    }

    #[test]
    fn small_magnitudes_are_small() {
        assert_eq!([0, u64::MAX, 1, u64::MAX - 1].map(zigzag), [0, 1, 2, 3]);
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        assert!(Input::new(&[0xff; 11]).varint().is_err());
        let mut too_large = [0x80; 10];
        too_large[9] = 2;
        assert!(Input::new(&too_large).varint().is_err());
    }
}
