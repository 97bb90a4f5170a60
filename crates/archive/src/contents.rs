//! What frames a file has, from its index or by going through it.

use crate::block;
use crate::bytes::{Input, Malformed, put_bytes, put_varint};
use crate::damage::{Cause, Damage, OpenError};
use crate::files::Source;
use crate::frame::{self, FORMAT, Found, Frames, Kind};
use std::io;
use std::ops::Range;

/// One frame of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) at: u64,
    /// Bytes of the frame.
    pub(crate) length: u64,
    pub(crate) meta: Vec<u8>,
}

impl Entry {
    /// Where the frame is, in a file that is in memory as a whole.
    pub(crate) fn frame(&self) -> Range<usize> {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        place(self.at)..place(self.at + self.length)
    }

    /// Where the body is, in a file that is in memory as a whole.
    pub(crate) fn body(&self) -> Range<usize> {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        place(self.at) + frame::head_length(self.meta.len())..place(self.at + self.length)
    }
}

/// The frames of a file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) entries: Vec<Entry>,
    /// Where what can be read ends, which is where one may go on writing.
    pub(crate) end: u64,
    /// Nothing is to be appended: it has an index, or cannot be read.
    pub(crate) finished: bool,
    pub(crate) damages: Vec<Damage>,
}

impl Contents {
    /// Goes through a file.
    pub(crate) fn scan(file: &str, bytes: &[u8]) -> Result<Self, OpenError> {
        let mut contents = Self::default();
        for found in Frames::new(bytes) {
            match found {
                Found::Frame { head, at, .. } => {
                    check_version(file, head.version)?;
                    contents.end = at.end as u64;
                    match Kind::from_number(head.kind) {
                        Some(kind) => contents.entries.push(Entry {
                            kind,
                            at: at.start as u64,
                            length: (at.end - at.start) as u64,
                            meta: head.meta.to_vec(),
                        }),
                        None => contents.damaged(file, &at, "a frame is of no known kind"),
                    }
                }
                Found::Damaged { at, why } => {
                    contents.end = at.end as u64;
                    contents.damaged(file, &at, why);
                }
                Found::Torn { at } => contents.damages.push(Damage {
                    file: file.to_owned(),
                    at: at.start as u64,
                    bytes: (at.end - at.start) as u64,
                    cause: Cause::Torn,
                    why: "the file ends within a frame".to_owned(),
                }),
            }
        }
        Ok(contents)
    }

    fn damaged(&mut self, file: &str, at: &Range<usize>, why: &str) {
        self.damages.push(Damage {
            file: file.to_owned(),
            at: at.start as u64,
            bytes: (at.end - at.start) as u64,
            cause: Cause::Damaged,
            why: why.to_owned(),
        });
    }

    /// Reads a file's index, or goes through the file if it has none that can be read. What the disk does not give is
    /// damage.
    ///
    /// # Errors
    /// If the file is of another format.
    pub(crate) fn load(file: &str, source: &dyn Source) -> Result<Self, OpenError> {
        if let Some(contents) = by_index(file, source) {
            return contents;
        }
        match source.read() {
            Ok(bytes) => Self::scan(file, &bytes),
            Err(error) => Ok(Self::unreadable(file, source.length().unwrap_or(0), &error)),
        }
    }

    fn unreadable(file: &str, length: u64, error: &io::Error) -> Self {
        Self {
            end: length,
            // Nothing may be cut off or appended.
            finished: true,
            damages: vec![Damage::unreadable(file, length, error)],
            ..Self::default()
        }
    }
}

fn check_version(file: &str, found: u8) -> Result<(), OpenError> {
    if found == FORMAT {
        return Ok(());
    }
    Err(OpenError::Format {
        file: file.to_owned(),
        found,
    })
}

/// Length of a [`Kind::Trailer`] frame: its only content is where the index begins.
const TRAILER: u64 = 28;

/// Bytes of an index before compression at most: several times what the largest segment has.
const MOST_INDEX: usize = 16 << 20;

fn by_index(file: &str, source: &dyn Source) -> Option<Result<Contents, OpenError>> {
    let length = source.length().ok()?;
    let end = length.checked_sub(TRAILER)?;
    let trailer = source.read_at(end, usize::try_from(TRAILER).ok()?).ok()?;
    let (head, _) = frame::whole(&trailer).ok()?;
    if let Err(other) = check_version(file, head.version) {
        return Some(Err(other));
    }
    if head.kind != Kind::Trailer as u8 {
        return None;
    }
    let start = Input::new(head.meta).u64().ok()?;
    let bytes = usize::try_from(end.checked_sub(start)?).ok()?;
    let index = source.read_at(start, bytes).ok()?;
    let (head, body) = frame::whole(&index).ok()?;
    if head.kind != Kind::Index as u8 {
        return None;
    }
    Some(Ok(Contents {
        entries: decode(body).ok()?,
        end: length,
        finished: true,
        damages: Vec::new(),
    }))
}

/// Appends the index of a file that is `at` bytes long, and the trailer.
///
/// # Errors
/// If there are too many frames, or the compressor fails, for want of memory.
pub(crate) fn put_index(
    out: &mut Vec<u8>,
    compressor: &mut block::Compressor,
    entries: &[Entry],
    at: u64,
) -> io::Result<()> {
    let mut index = Vec::new();
    let mut end = 0;
    for entry in entries {
        index.push(entry.kind as u8);
        put_varint(&mut index, entry.at - end);
        put_varint(&mut index, entry.length);
        put_bytes(&mut index, &entry.meta);
        end = entry.at + entry.length;
    }
    if index.len() > MOST_INDEX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    frame::put(out, Kind::Index, &[], &compressor.compress(&index)?);
    frame::put(out, Kind::Trailer, &at.to_le_bytes(), &[]);
    Ok(())
}

fn decode(body: &[u8]) -> Result<Vec<Entry>, Malformed> {
    let index = block::decompress(body, MOST_INDEX)?;
    let mut input = Input::new(&index);
    let mut entries = Vec::new();
    let mut end = 0_u64;
    while !input.is_empty() {
        let kind = Kind::from_number(input.u8()?).ok_or(Malformed("a frame is of no known kind"))?;
        let beyond = Malformed("a frame is beyond any file");
        let at = end.checked_add(input.varint()?).ok_or(beyond)?;
        let length = input.varint()?;
        end = at.checked_add(length).ok_or(beyond)?;
        let meta = input.bytes()?.to_vec();
        entries.push(Entry {
            kind,
            at,
            length,
            meta,
        });
    }
    Ok(entries)
}

/// The body of a frame, checked against what is known of it.
pub(crate) fn body(file: &str, source: &dyn Source, entry: &Entry) -> Result<Vec<u8>, Damage> {
    let damage = |why: String| Damage {
        file: file.to_owned(),
        at: entry.at,
        bytes: entry.length,
        cause: Cause::Damaged,
        why,
    };
    // A frame is longer than any body by its head.
    let length = usize::try_from(entry.length)
        .ok()
        .filter(|length| *length <= frame::MOST_BODY + frame::MOST_HEAD)
        .ok_or_else(|| damage("a frame is longer than any".to_owned()))?;
    let mut bytes = source
        .read_at(entry.at, length)
        .map_err(|error| damage(error.to_string()))?;
    let (head, _) = frame::whole(&bytes).map_err(|Malformed(why)| damage(why.to_owned()))?;
    if head.kind != entry.kind as u8 || head.meta != entry.meta {
        return Err(damage("a frame is not the one that the index names".to_owned()));
    }
    Ok(bytes.split_off(head.length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finished() -> Vec<u8> {
        let mut file = Vec::new();
        for i in 0..20_u8 {
            frame::put(&mut file, Kind::Block, &[i], &[i; 30]);
        }
        let entries = Contents::scan("f", &file).expect("this format").entries;
        let at = file.len() as u64;
        let mut compressor = block::Compressor::new().expect("memory");
        put_index(&mut file, &mut compressor, &entries, at).expect("memory");
        file
    }

    #[test]
    fn the_index_tells_what_going_through_tells() {
        let file = finished();
        let scanned = Contents::scan("f", &file).expect("this format");
        let loaded = Contents::load("f", &file).expect("this format");
        assert!(loaded.finished && !scanned.finished);
        assert_eq!(loaded.entries, scanned.entries[..20]);
    }

    #[test]
    fn a_file_without_a_sound_index_is_gone_through() {
        let file = finished();
        for at in 20 * 51..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            let loaded = Contents::load("f", &damaged).expect("this format");
            assert_eq!(
                loaded
                    .entries
                    .iter()
                    .filter(|entry| entry.kind == Kind::Block)
                    .count(),
                20
            );
        }
    }

    #[test]
    fn another_format_is_refused() {
        let mut file = Vec::new();
        frame::put(&mut file, Kind::Block, b"meta", b"body");
        file[3] = 2;
        let checksum = crc32fast::hash(&file[..20]);
        file[20..24].copy_from_slice(&checksum.to_le_bytes());
        let error = Contents::load("rows/1.segment", &file).expect_err("it is another format");
        assert_eq!(
            error.to_string(),
            "rows/1.segment is of format 2, and this version of rocewatch reads format 1 only: use the version that \
             wrote it, or give the agent another folder"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_index_or_refused(bytes: Vec<u8>) {
            let _ = decode(&bytes);
            let packed = block::Compressor::new().and_then(|mut compressor| compressor.compress(&bytes)).expect("memory");
            let _ = decode(&packed);
        }
    }
}
