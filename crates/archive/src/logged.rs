//! A log as it is read: for sealing, and for looking up what is not sealed yet.

use crate::bytes::Malformed;
use crate::contents::{Contents, Entry};
use crate::damage::{Cause, Damage, OpenError};
use crate::frame::Kind;
use crate::row;
use crate::track::{self, TrackId};
use std::collections::HashMap;
use std::ops::Range;

/// A log in memory, taken apart and checked.
pub(crate) struct Logged {
    pub(crate) name: String,
    bytes: Vec<u8>,
    definitions: HashMap<TrackId, Range<usize>>,
    /// Frames of rows, in the order in which they were written.
    frames: Vec<Placed>,
    /// What cannot be read.
    pub(crate) damages: Vec<Damage>,
}

struct Placed {
    meta: row::Meta,
    at: u64,
    body: Range<usize>,
}

/// A row of a log, not decoded yet.
#[derive(Clone, Copy)]
pub(crate) struct LoggedRow<'a> {
    pub(crate) track: TrackId,
    pub(crate) bytes: &'a [u8],
    frame: &'a Placed,
}

impl LoggedRow<'_> {
    pub(crate) fn meta(&self) -> &row::Meta {
        &self.frame.meta
    }

    /// Where its frame begins in the file.
    pub(crate) fn at(&self) -> u64 {
        self.frame.at
    }
}

impl Logged {
    /// Takes a log apart.
    ///
    /// # Errors
    /// If it is of another format.
    pub(crate) fn new(name: String, bytes: Vec<u8>) -> Result<Self, OpenError> {
        let contents = Contents::scan(&name, &bytes)?;
        let mut log = Self {
            name,
            bytes,
            definitions: HashMap::new(),
            frames: Vec::new(),
            damages: contents.damages,
        };
        for entry in &contents.entries {
            log.take(entry);
        }
        Ok(log)
    }

    fn take(&mut self, entry: &Entry) {
        let body = entry.body();
        match (entry.kind, row::Meta::decode(&entry.meta)) {
            (Kind::Track, _) => {
                let id = track::id_of(&self.bytes[body.clone()]);
                self.definitions.insert(id, body);
            }
            (Kind::Rows, Ok(meta)) => self.frames.push(Placed {
                meta,
                at: entry.at,
                body,
            }),
            _ => self.damaged(
                entry.at,
                body.len(),
                Malformed("a frame does not belong into a log"),
            ),
        }
    }

    fn damaged(&mut self, at: u64, bytes: usize, why: Malformed) {
        let damage = self.damage(at, bytes, why);
        self.damages.push(damage);
    }

    pub(crate) fn damage(&self, at: u64, bytes: usize, Malformed(why): Malformed) -> Damage {
        Damage {
            file: self.name.clone(),
            at,
            bytes: bytes as u64,
            cause: Cause::Damaged,
            why: why.to_owned(),
        }
    }

    /// Every definition that is there.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (TrackId, &[u8])> {
        self.definitions
            .iter()
            .map(|(id, place)| (*id, &self.bytes[place.clone()]))
    }

    pub(crate) fn definition(&self, track: TrackId) -> Option<&[u8]> {
        Some(&self.bytes[self.definitions.get(&track)?.clone()])
    }

    /// The rows of the frames that `wanted` picks. What cannot be told apart is damage.
    pub(crate) fn rows(
        &self,
        wanted: impl Fn(&row::Meta) -> bool,
    ) -> impl Iterator<Item = Result<LoggedRow<'_>, Damage>> {
        let frames = self.frames.iter().filter(move |frame| wanted(&frame.meta));
        frames.flat_map(|frame| {
            row::each(&self.bytes[frame.body.clone()]).map(|row| match row {
                Ok((track, bytes)) => Ok(LoggedRow { track, bytes, frame }),
                Err(why) => Err(self.damage(frame.at, frame.body.len(), why)),
            })
        })
    }

    /// Microseconds from the first to the last row.
    pub(crate) fn covers(&self) -> u64 {
        let first = self.frames.iter().map(|frame| frame.meta.first).min();
        let last = self.frames.iter().map(|frame| frame.meta.last).max();
        last.unwrap_or(0).saturating_sub(first.unwrap_or(0))
    }
}
