//! Packs pages as RFC 1952 asks.

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// Deflate, no flags, no time, the fastest level, an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// A compressor whose tables, a third of a megabyte, are kept from page to page: to have them from the system and give
/// them back each time costs more than compressing a page.
pub(super) struct Gzip {
    deflate: Compress,
}

impl Gzip {
    /// Level 1: compressing costs several times more than encoding, and higher levels save little.
    pub(super) fn new() -> Self {
        Self {
            deflate: Compress::new(Compression::fast(), false),
        }
    }

    /// `plain`, packed.
    pub(super) fn pack(&mut self, plain: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(plain.len() / 4 + 64);
        out.extend_from_slice(&HEADER);
        self.deflate(plain, &mut out);
        let mut checksum = Crc::new();
        checksum.update(plain);
        out.extend_from_slice(&checksum.sum().to_le_bytes());
        out.extend_from_slice(&checksum.amount().to_le_bytes());
        out.into()
    }

    fn deflate(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        self.deflate.reset();
        loop {
            // As much as there is, and no more than there was: what is taken in is always a part of `plain`.
            let done = usize::try_from(self.deflate.total_in()).unwrap_or(usize::MAX);
            let rest = plain.get(done..).unwrap_or_default();
            match self.deflate.compress_vec(rest, out, FlushCompress::Finish) {
                Ok(Status::Ok | Status::BufError) => out.reserve(rest.len() / 4 + 64),
                Ok(Status::StreamEnd) => return,
                Err(error) => unreachable!("compressing from memory to memory cannot fail: {error}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use proptest::prelude::*;
    use std::io::Read as _;

    fn unpack(packed: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut plain).unwrap();
        plain
    }

    #[test]
    fn what_does_not_shrink_is_packed_whole() {
        // A generator whose output has no pattern that deflate can find (Knuth's MMIX constants).
        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .take(300_000)
        .collect();
        let packed = Gzip::new().pack(&noise);
        assert!(packed.len() >= noise.len());
        assert_eq!(unpack(&packed), noise);
    }

    #[test]
    fn nothing_is_packed_too() {
        assert_eq!(unpack(&Gzip::new().pack(b"")), b"");
    }

    proptest! {
        #[test]
        fn a_compressor_that_is_used_again_remembers_nothing(first: Vec<u8>, second: Vec<u8>) {
            let mut gzip = Gzip::new();
            let again = gzip.pack(&first);
            prop_assert_eq!(unpack(&again), first);
            let second_packed = gzip.pack(&second);
            prop_assert_eq!(unpack(&second_packed), &second[..]);
            prop_assert_eq!(second_packed, Gzip::new().pack(&second));
        }
    }
}
