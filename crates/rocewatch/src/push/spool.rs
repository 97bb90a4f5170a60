//! What waits to be sent: in order, within bounds, and on disk where there is a directory.
//!
//! Each record is a file of its own, which is gone once it is sent. Its name says all that is to be known of it without
//! opening it; what is inside has a checksum, since a node that loses power may leave half of it.

use crate::files;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

/// A file takes at least this on disk.
const BLOCK: u64 = 4096;
/// Without a disk, or while it takes nothing, no more than this waits in memory.
const MOST_HELD: u64 = 8 << 20;

/// A queue of records.
#[derive(Clone)]
pub(super) struct Spool {
    queue: Arc<Mutex<Queue>>,
    arrived: Arc<Notify>,
}

/// Something to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Of when it is, in milliseconds since 1970.
    pub(super) time: i64,
    /// How many samples or events it holds.
    pub(super) units: u64,
    pub(super) body: Bytes,
}

/// The oldest record, and what to call it by.
#[derive(Debug)]
pub(super) enum Oldest {
    Record(u64, Record),
    /// It could not be read again, and is gone: so many units are lost.
    Damaged(u64),
}

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) units: u64,
    pub(super) bytes: u64,
}

struct Queue {
    folder: Option<PathBuf>,
    entries: VecDeque<Entry>,
    waiting: Waiting,
    held: u64,
    most: u64,
    next: u64,
    /// The oldest is being sent.
    in_hand: bool,
    disk_fails: bool,
}

struct Entry {
    number: u64,
    time: i64,
    units: u64,
    bytes: u64,
    /// What is not on disk.
    body: Option<Bytes>,
}

impl Spool {
    /// A queue of at most `most` bytes, with what the last run left in `folder`. Without one it is in memory.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub(super) fn open(folder: Option<PathBuf>, most: u64) -> io::Result<Self> {
        let mut queue = Queue {
            folder,
            entries: VecDeque::new(),
            waiting: Waiting::default(),
            held: 0,
            most,
            next: 1,
            in_hand: false,
            disk_fails: false,
        };
        queue.load()?;
        Ok(Self {
            queue: Arc::new(Mutex::new(queue)),
            arrived: Arc::new(Notify::new()),
        })
    }

    /// Puts a record behind all others. Gives how many units were dropped to make room.
    pub(super) async fn push(&self, record: Record) -> u64 {
        let spool = self.clone();
        let dropped = spawn_blocking(move || spool.queue().push(record)).await;
        self.arrived.notify_one();
        dropped.unwrap_or(0)
    }

    /// The oldest record, as soon as there is one. It stays until [`Spool::remove`].
    pub(super) async fn oldest(&self) -> Oldest {
        loop {
            let spool = self.clone();
            if let Ok(Some(oldest)) = spawn_blocking(move || spool.queue().oldest()).await {
                return oldest;
            }
            self.arrived.notified().await;
        }
    }

    /// Takes the record of this number out: it was sent, or never can be.
    pub(super) async fn remove(&self, number: u64) {
        let spool = self.clone();
        let _ = spawn_blocking(move || spool.queue().remove(number)).await;
    }

    pub(super) fn waiting(&self) -> Waiting {
        self.queue().waiting
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn load(&mut self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        files::make_directory(folder)?;
        let mut found = Vec::new();
        for (name, size) in files::list(folder)? {
            if name.ends_with(files::UNFINISHED) {
                files::remove(&folder.join(name))?;
            } else {
                found.extend(Entry::from_name(&name, size));
            }
        }
        found.sort_by_key(|entry: &Entry| entry.number);
        self.next = found.last().map_or(1, |last| last.number + 1);
        for entry in found {
            self.add(entry);
        }
        self.make_room();
        Ok(())
    }

    fn push(&mut self, record: Record) -> u64 {
        let mut entry = Entry {
            number: self.next,
            time: record.time,
            units: record.units,
            bytes: record.body.len() as u64,
            body: None,
        };
        self.next += 1;
        match self.store(&entry, &record.body) {
            Some(size) => entry.bytes = size.max(BLOCK),
            None => entry.body = Some(record.body),
        }
        self.add(entry);
        self.make_room()
    }

    /// Writes a record to disk; `None` if it has to stay in memory.
    fn store(&mut self, entry: &Entry, body: &[u8]) -> Option<u64> {
        let folder = self.folder.as_deref()?;
        let mut content = Vec::with_capacity(4 + body.len());
        content.extend_from_slice(&crc32fast::hash(body).to_be_bytes());
        content.extend_from_slice(body);
        let written = files::write_whole(&entry.path(folder), &content);
        if written.is_err() != self.disk_fails {
            self.disk_fails = written.is_err();
            if let Err(error) = &written {
                tracing::warn!(
                    "{}: {error}; what waits to be sent stays in memory, a little of it",
                    folder.display()
                );
            } else {
                tracing::info!("{} can be written again", folder.display());
            }
        }
        written.ok().map(|()| content.len() as u64)
    }

    fn add(&mut self, entry: Entry) {
        self.waiting.units += entry.units;
        self.waiting.bytes += entry.bytes;
        self.held += entry.held();
        self.entries.push_back(entry);
    }

    /// Drops the oldest until what waits is within bounds; not the one that is being sent, and never the newest.
    fn make_room(&mut self) -> u64 {
        let mut dropped = 0;
        let first = usize::from(self.in_hand);
        while self.entries.len() > first + 1 {
            let at = if self.waiting.bytes > self.most {
                first
            } else if self.held > MOST_HELD {
                let held = self.entries.iter().skip(first).position(|entry| entry.held() > 0);
                held.map_or(first, |at| at + first)
            } else {
                break;
            };
            dropped += self.take_out(at);
        }
        dropped
    }

    fn take_out(&mut self, at: usize) -> u64 {
        let Some(entry) = self.entries.remove(at) else {
            return 0;
        };
        self.waiting.units -= entry.units;
        self.waiting.bytes -= entry.bytes;
        self.held -= entry.held();
        if let (None, Some(folder)) = (&entry.body, &self.folder)
            && let Err(error) = files::remove(&entry.path(folder))
        {
            tracing::debug!(%error, "a record that was sent could not be removed");
        }
        entry.units
    }

    fn oldest(&mut self) -> Option<Oldest> {
        let entry = self.entries.front()?;
        let body = match (&entry.body, &self.folder) {
            (Some(body), _) => Some(body.clone()),
            (None, Some(folder)) => read(&entry.path(folder)),
            (None, None) => None,
        };
        let Some(body) = body else {
            return Some(Oldest::Damaged(self.take_out(0)));
        };
        let record = Record {
            time: entry.time,
            units: entry.units,
            body,
        };
        let number = entry.number;
        self.in_hand = true;
        Some(Oldest::Record(number, record))
    }

    fn remove(&mut self, number: u64) {
        self.in_hand = false;
        if let Some(at) = self.entries.iter().position(|entry| entry.number == number) {
            self.take_out(at);
        }
    }
}

fn read(path: &Path) -> Option<Bytes> {
    let content = Bytes::from(files::read(path).ok()?);
    let checksum = content.first_chunk::<4>().copied()?;
    let body = content.slice(4..);
    (crc32fast::hash(&body) == u32::from_be_bytes(checksum)).then_some(body)
}

impl Entry {
    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{:020}-{}-{}", self.number, self.time, self.units))
    }

    fn from_name(name: &str, size: u64) -> Option<Self> {
        let mut parts = name.splitn(3, '-');
        let mut part = || parts.next();
        Some(Self {
            number: part()?.parse().ok()?,
            time: part()?.parse().ok()?,
            units: part()?.parse().ok()?,
            bytes: size.max(BLOCK),
            body: None,
        })
    }

    fn held(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // damages files

    use super::*;

    fn record(number: u64, bytes: usize) -> Record {
        Record {
            time: 1_000 + number.cast_signed(),
            units: number,
            body: vec![u8::try_from(number).unwrap(); bytes].into(),
        }
    }

    /// Takes all out, in order; gives the units of each.
    async fn drain(spool: &Spool) -> Vec<u64> {
        let mut units = Vec::new();
        while spool.waiting().units > 0 {
            match spool.oldest().await {
                Oldest::Record(number, found) => {
                    assert_eq!(
                        found,
                        record(found.units, found.body.len()),
                        "what went in comes out"
                    );
                    units.push(found.units);
                    spool.remove(number).await;
                }
                Oldest::Damaged(lost) => assert!(lost > 0),
            }
        }
        units
    }

    #[tokio::test]
    async fn what_waits_keeps_its_order_through_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Spool::open(Some(folder.path().join("queue")), 1 << 20).unwrap();
        let spool = open();
        for number in 1..=12 {
            assert_eq!(spool.push(record(number, 100)).await, 0);
        }
        // Being sent when the process ends: it is sent again.
        assert!(matches!(spool.oldest().await, Oldest::Record(_, first) if first.units == 1));
        drop(spool);
        let spool = open();
        spool.push(record(13, 100)).await;
        let expected = Waiting {
            units: 91,
            bytes: 13 * BLOCK,
        };
        assert_eq!(spool.waiting(), expected);
        assert_eq!(drain(&spool).await, (1..=13).collect::<Vec<_>>());
        assert_eq!(std::fs::read_dir(folder.path().join("queue")).unwrap().count(), 0);
        assert_eq!(spool.waiting(), Waiting::default());
    }

    #[tokio::test]
    async fn the_oldest_make_room_but_not_the_one_that_is_being_sent() {
        for on_disk in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let place = on_disk.then(|| folder.path().to_owned());
            let spool = Spool::open(place, 3 * BLOCK).unwrap();
            let size = usize::try_from(BLOCK).unwrap() - 4;
            for number in 1..=3 {
                assert_eq!(spool.push(record(number, size)).await, 0);
            }
            let Oldest::Record(in_hand, _) = spool.oldest().await else {
                panic!()
            };
            assert_eq!(spool.push(record(4, size)).await, 2, "the second goes");
            spool.remove(in_hand).await;
            assert_eq!(spool.push(record(5, size)).await, 0);
            assert_eq!(drain(&spool).await, [3, 4, 5]);
        }
    }

    #[tokio::test]
    async fn half_a_record_is_lost_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(Some(folder.path().to_owned()), 1 << 20).unwrap();
        for number in 1..=3 {
            spool.push(record(number, 100)).await;
        }
        let second = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.to_str().unwrap().ends_with("-2"))
            .unwrap();
        std::fs::write(second, b"half").unwrap();
        std::fs::write(folder.path().join("something else"), b"stays").unwrap();
        std::fs::write(folder.path().join("00000000000000000009-1-1.new"), b"unfinished").unwrap();
        drop(spool);
        let spool = Spool::open(Some(folder.path().to_owned()), 1 << 20).unwrap();
        assert_eq!(drain(&spool).await, [1, 3]);
    }

    #[tokio::test]
    async fn a_disk_that_takes_nothing_leaves_memory() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("queue");
        let spool = Spool::open(Some(place.clone()), 1 << 30).unwrap();
        std::fs::remove_dir(&place).unwrap();
        std::fs::write(&place, b"in the way").unwrap();
        let size = 1 << 20;
        let mut dropped = 0;
        for number in 1..=10 {
            dropped += spool.push(record(number, size)).await;
        }
        assert_eq!(dropped, 1 + 2, "eight MiB are held, the two oldest are gone");
        std::fs::remove_file(&place).unwrap();
        std::fs::create_dir(&place).unwrap();
        spool.push(record(11, size)).await;
        assert_eq!(drain(&spool).await, (3..=11).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn whoever_waits_is_woken() {
        let spool = Spool::open(None, 1 << 20).unwrap();
        let waiting = {
            let spool = spool.clone();
            tokio::spawn(async move { spool.oldest().await })
        };
        tokio::task::yield_now().await;
        spool.push(record(1, 10)).await;
        assert!(matches!(waiting.await.unwrap(), Oldest::Record(_, found) if found.units == 1));
    }
}
