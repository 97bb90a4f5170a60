//! Small records that are kept by time and can be brought up to date: events, incidents.

use crate::bytes::{Input, Malformed, put_bytes};
use crate::contents::Contents;
use crate::damage::{Damage, OpenError};
use crate::files::Disk;
use crate::frame::{self, Kind};
use crate::layout::{Numbered, is_name};
use crate::tail::Tail;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// The longest body of a record.
pub const MOST_BODY: usize = 1 << 20;
/// Bytes of a file of records, roughly.
const FILE: u64 = 1 << 20;

/// Something that began and perhaps ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is known by: up to 128 ASCII letters, digits, `-`, `_` and `.`, the last not at the beginning.
    pub id: String,
    /// When it began, in nanoseconds since 1970.
    pub began: i64,
    /// When it ended; `None` while it goes on.
    pub ended: Option<i64>,
    /// What there is to say of it: JSON, by convention.
    pub body: Vec<u8>,
}

/// Why something cannot be kept, whatever the disk says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The id cannot be the name of a file.
    #[error("an id is 1 to 128 ASCII letters, digits, '-', '_' and '.', which is not at the beginning")]
    Id,
    /// The body is longer than [`MOST_BODY`].
    #[error("a body is longer than 1 MiB")]
    Body,
}

impl Record {
    pub(crate) fn check(&self) -> Result<(), Refused> {
        if !is_name(&self.id) {
            return Err(Refused::Id);
        }
        if self.body.len() > MOST_BODY {
            return Err(Refused::Body);
        }
        Ok(())
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let mut meta = Vec::new();
        put_bytes(&mut meta, self.id.as_bytes());
        meta.extend_from_slice(&self.began.to_le_bytes());
        meta.push(self.ended.is_some().into());
        meta.extend_from_slice(&self.ended.unwrap_or(0).to_le_bytes());
        frame::put(out, Kind::Record, &meta, &self.body);
    }

    pub(crate) fn decode(meta: &[u8], body: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input::new(meta);
        let id = input.text()?.to_owned();
        let began = input.i64()?;
        let has_ended = input.u8()? != 0;
        let ended = input.i64()?;
        Ok(Self {
            id,
            began,
            ended: has_ended.then_some(ended),
            body: body.to_vec(),
        })
    }

    /// True if it was going on at some time of `from..=to`.
    pub(crate) fn overlaps(&self, from: i64, to: i64) -> bool {
        self.began <= to && self.ended.is_none_or(|ended| ended >= from)
    }
}

/// The records of an archive, in the hands of its writer.
pub(crate) struct Records {
    disk: Arc<dyn Disk>,
    most_bytes: u64,
    most_waiting: usize,
    /// Files that are not appended to, oldest first, and their bytes.
    finished: VecDeque<(u64, u64)>,
    current: Option<(u64, Tail)>,
    next: u64,
    /// The current file's name survives a power loss.
    named: bool,
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// Records that found no room to wait in.
    pub(crate) lost: u64,
}

impl Records {
    pub(crate) fn new(disk: Arc<dyn Disk>, most_bytes: u64, most_waiting: usize) -> Self {
        Self {
            disk,
            most_bytes,
            most_waiting,
            finished: VecDeque::new(),
            current: None,
            next: 1,
            named: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            lost: 0,
        }
    }

    /// Goes on behind the records that are on disk.
    pub(crate) fn resume(&mut self) -> Result<Vec<Damage>, OpenError> {
        let list = OpenError::io("list the archive's records");
        let mut damages = Vec::new();
        self.finished.clear();
        self.current = None;
        for number in Numbered::Records.list(&*self.disk).map_err(list)? {
            self.finish();
            self.next = number + 1;
            let path = Numbered::Records.path(number);
            let source = self
                .disk
                .open(&path)
                .map_err(OpenError::io(format!("open {path}")))?;
            let contents = Contents::load(&path, &*source)?;
            damages.extend(contents.damages);
            let tail = Tail::open(&*self.disk, &path, contents.end);
            match tail.ok().filter(|_| !contents.finished) {
                Some(tail) => self.current = Some((number, tail)),
                None => self.finished.push_back((number, contents.end)),
            }
        }
        Ok(damages)
    }

    /// Queues a version of a record; the oldest that wait make room for it.
    pub(crate) fn push(&mut self, record: &Record) {
        let mut frame = Vec::new();
        record.put(&mut frame);
        self.waiting_bytes += frame.len();
        self.waiting.push_back(frame);
        while self.waiting_bytes > self.most_waiting {
            let Some(oldest) = self.waiting.pop_front() else {
                return;
            };
            self.waiting_bytes -= oldest.len();
            self.lost += 1;
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let finished: u64 = self.finished.iter().map(|file| file.1).sum();
        finished + self.current.as_ref().map_or(0, |(_, tail)| tail.length())
    }

    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Writes all that waits, as far as the disk takes it.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        while let Some(frame) = self.waiting.front() {
            let (_, tail) = match &mut self.current {
                Some(current) => current,
                None => self.current.insert(create(&*self.disk, self.next)?),
            };
            let written = tail.append(frame);
            if written.is_ok() {
                self.waiting_bytes -= frame.len();
                self.waiting.pop_front();
            }
            self.roll()?;
            written?;
        }
        Ok(())
    }

    /// Makes what was written survive a power loss.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        let Some((_, tail)) = &mut self.current else {
            return Ok(());
        };
        let synced = tail.sync();
        if tail.is_broken() {
            self.finish();
        }
        synced?;
        if !self.named {
            self.disk.sync_folder(Numbered::Records.folder())?;
            self.named = true;
        }
        Ok(())
    }

    fn roll(&mut self) -> io::Result<()> {
        let Some((_, tail)) = &mut self.current else {
            return Ok(());
        };
        if !tail.is_broken() {
            if tail.length() < FILE {
                return Ok(());
            }
            tail.sync()?;
        }
        self.finish();
        self.evict()
    }

    fn finish(&mut self) {
        if let Some((number, tail)) = self.current.take() {
            self.finished.push_back((number, tail.length()));
            self.next = number + 1;
            self.named = false;
        }
    }

    fn evict(&mut self) -> io::Result<()> {
        while self.bytes() > self.most_bytes {
            let Some((oldest, _)) = self.finished.front().copied() else {
                return Ok(());
            };
            self.disk.remove(&Numbered::Records.path(oldest))?;
            self.finished.pop_front();
        }
        Ok(())
    }
}

fn create(disk: &dyn Disk, number: u64) -> io::Result<(u64, Tail)> {
    Ok((number, Tail::open(disk, &Numbered::Records.path(number), 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_comes_back(id in "[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,127}", began: i64, ended: Option<i64>, body: Vec<u8>) {
            let record = Record { id, began, ended, body };
            prop_assert_eq!(record.check(), Ok(()));
            let mut out = Vec::new();
            record.put(&mut out);
            let (head, body) = frame::whole(&out).expect("it is whole");
            prop_assert_eq!(Record::decode(head.meta, body), Ok(record));
        }

        #[test]
        fn any_bytes_are_a_record_or_refused(meta: Vec<u8>) {
            let _ = Record::decode(&meta, &[]);
        }
    }

    #[test]
    fn an_id_is_the_name_of_a_file() {
        let with = |id: &str| Record {
            id: id.to_owned(),
            began: 0,
            ended: None,
            body: Vec::new(),
        };
        for id in ["", "a/b", "..", ".hidden", "é", &"x".repeat(129)] {
            assert_eq!(with(id).check(), Err(Refused::Id), "{id}");
        }
        assert_eq!(with("2026-11-29T03.12_pfc-storm").check(), Ok(()));
    }
}
