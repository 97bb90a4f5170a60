//! The envelope around everything in the archive's files: what it is, how long, and two checksums.
//!
//! A file is nothing but frames. Each can be found, checked and passed over by itself, so a damaged one costs what it
//! holds and no more.

use crate::bytes::{Input, Malformed};
use std::ops::Range;

/// The version of the format that this crate writes, and the only one that it reads.
pub const FORMAT: u8 = 1;

/// Begins every frame. The first byte is no ASCII and no UTF-8.
const MAGIC: [u8; 3] = [0xf5, b'R', b'W'];
const FIXED: usize = 16;
const CHECKSUM: usize = 4;
/// The longest head that anything writes.
pub(crate) const MOST_HEAD: usize = head_length(MOST_META);
const MOST_META: usize = 512;
/// No body is longer; a length beyond it is damage.
pub(crate) const MOST_BODY: usize = 64 << 20;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The definition of a track.
    Track = 1,
    /// Rows of some tracks as they came, in a log.
    Rows = 2,
    /// Rows of one track, compressed by column.
    Block = 3,
    /// All blocks of a log are written.
    Seal = 4,
    /// Where the frames of the file are.
    Index = 5,
    /// Where the index is; the last frame of a finished segment.
    Trailer = 6,
    /// A version of a record.
    Record = 7,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Track,
        Self::Rows,
        Self::Block,
        Self::Seal,
        Self::Index,
        Self::Trailer,
        Self::Record,
    ];

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Appends a frame.
///
/// # Panics
/// If `meta` or `body` exceed what a reader accepts.
pub(crate) fn put(out: &mut Vec<u8>, kind: Kind, meta: &[u8], body: &[u8]) {
    assert!(
        meta.len() <= MOST_META && body.len() <= MOST_BODY,
        "a frame is too long"
    );
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[FORMAT, kind as u8, 0]);
    // Both lengths were just checked to fit.
    out.extend_from_slice(&u16::try_from(meta.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
    out.extend_from_slice(meta);
    let head = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&head.to_le_bytes());
    out.extend_from_slice(body);
}

/// Length of the head of a frame with so many bytes of meta.
pub(crate) const fn head_length(meta: usize) -> usize {
    FIXED + meta + CHECKSUM
}

/// A frame's head, checked.
#[derive(Clone, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) version: u8,
    /// The number of a [`Kind`]; a later version may have more of them.
    pub(crate) kind: u8,
    pub(crate) meta: &'a [u8],
    /// Length of the head itself.
    pub(crate) length: usize,
    pub(crate) body: usize,
    body_checksum: u32,
}

impl Head<'_> {
    /// Length of the frame.
    pub(crate) fn whole(&self) -> usize {
        self.length + self.body
    }

    /// True if this is the body that was written.
    pub(crate) fn fits(&self, body: &[u8]) -> bool {
        body.len() == self.body && crc32fast::hash(body) == self.body_checksum
    }
}

/// Reads the head of a frame at the beginning of `bytes`.
pub(crate) fn head(bytes: &[u8]) -> Result<Head<'_>, Malformed> {
    let mut input = Input::new(bytes);
    if input.take(MAGIC.len())? != MAGIC {
        return Err(Malformed("no frame begins here"));
    }
    let version = input.u8()?;
    let kind = input.u8()?;
    input.u8()?;
    let meta_length = usize::from(input.u16()?);
    let body = input.u32()? as usize;
    let body_checksum = input.u32()?;
    if meta_length > MOST_META || body > MOST_BODY {
        return Err(Malformed("a frame is longer than any"));
    }
    let meta = input.take(meta_length)?;
    let checked = FIXED + meta_length;
    if crc32fast::hash(&bytes[..checked]) != input.u32()? {
        return Err(Malformed("the checksum of a head does not fit"));
    }
    Ok(Head {
        version,
        kind,
        meta,
        length: head_length(meta_length),
        body,
        body_checksum,
    })
}

/// The head and body of a frame at the beginning of `bytes`, which are one frame and no more.
pub(crate) fn whole(bytes: &[u8]) -> Result<(Head<'_>, &[u8]), Malformed> {
    let head = head(bytes)?;
    let body = bytes.get(head.length..).ok_or(Malformed("it ends too early"))?;
    if head.fits(body) {
        Ok((head, body))
    } else {
        Err(Malformed("the checksum of a body does not fit"))
    }
}

/// What stands at a place of a file.
#[derive(Clone, Debug)]
pub(crate) enum Found<'a> {
    /// A frame, and where.
    Frame { head: Head<'a>, at: Range<usize> },
    /// Nothing that can be read, with more frames behind it or a frame whose length is known.
    Damaged { at: Range<usize>, why: &'static str },
    /// The rest of the file: a frame that was not written to its end, or what a power loss left of it.
    Torn { at: Range<usize> },
}

/// Goes through a file frame by frame.
pub(crate) struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Where the next readable head is, from `from` on.
    fn next_head(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        let begins = |at: &usize| rest[*at..].starts_with(&MAGIC) && head(&rest[*at..]).is_ok();
        (0..rest.len()).find(begins).map(|at| from + at)
    }

    fn skip(&mut self, why: &'static str) -> Found<'a> {
        let start = self.at;
        let next = self.next_head(start + 1);
        self.at = next.unwrap_or(self.bytes.len());
        let at = start..self.at;
        match next {
            Some(_) => Found::Damaged { at, why },
            None => Found::Torn { at },
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Found<'a>;

    fn next(&mut self) -> Option<Found<'a>> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let head = match head(rest) {
            Ok(head) => head,
            Err(Malformed(why)) => return Some(self.skip(why)),
        };
        let at = self.at..self.at + head.whole();
        let Some(body) = rest.get(head.length..head.whole()) else {
            return Some(self.skip("it ends too early"));
        };
        self.at = at.end;
        Some(if head.fits(body) {
            Found::Frame { head, at }
        } else {
            Found::Damaged {
                at,
                why: "the checksum of a body does not fit",
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn three() -> (Vec<u8>, Vec<usize>) {
        let mut file = Vec::new();
        let mut ends = Vec::new();
        for body in [&b"first"[..], b"", b"the third is longer"] {
            put(&mut file, Kind::Block, b"meta", body);
            ends.push(file.len());
        }
        (file, ends)
    }

    fn bodies(file: &[u8]) -> Vec<&[u8]> {
        Frames::new(file)
            .filter_map(|found| match found {
                Found::Frame { head, at } => Some(&file[at.start + head.length..at.end]),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn frames_come_back() {
        let (file, _) = three();
        assert_eq!(bodies(&file), [&b"first"[..], b"", b"the third is longer"]);
    }

    #[test]
    fn a_file_cut_anywhere_keeps_its_whole_frames() {
        let (file, ends) = three();
        for length in 0..file.len() {
            let whole = ends.iter().filter(|end| **end <= length).count();
            assert_eq!(bodies(&file[..length]).len(), whole, "cut at {length}");
        }
    }

    #[test]
    fn a_flipped_bit_costs_one_frame_and_is_told() {
        let (file, ends) = three();
        for at in 0..file.len() {
            for bit in 0..8 {
                let mut damaged = file.clone();
                damaged[at] ^= 1 << bit;
                let hit = ends.iter().filter(|end| **end <= at).count();
                let mut expected = bodies(&file);
                expected.remove(hit);
                assert_eq!(bodies(&damaged), expected, "byte {at} bit {bit}");
                let told = Frames::new(&damaged).any(|found| !matches!(found, Found::Frame { .. }));
                assert!(told, "byte {at} bit {bit}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_gone_through_once(bytes: Vec<u8>) {
            let mut end = 0;
            for found in Frames::new(&bytes) {
                let (Found::Frame { at, .. } | Found::Damaged { at, .. } | Found::Torn { at }) = found;
                prop_assert_eq!(at.start, end);
                prop_assert!(at.end > end);
                end = at.end;
            }
            prop_assert_eq!(end, bytes.len());
        }
    }
}
