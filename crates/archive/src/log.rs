//! The newest rows, as they came: written every second, sealed into blocks every few minutes.

use crate::files::Disk;
use crate::frame::{self, Kind};
use crate::layout::Numbered;
use crate::row;
use crate::second::Second;
use crate::tail::Tail;
use crate::time::{Epoch, Offset};
use crate::track::{self, TrackId};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;

/// Copies of a definition in every file that needs it: no single damage makes the rows of a track unreadable.
pub(crate) const COPIES: usize = 2;

/// Appends the definition of a track.
pub(crate) fn put_definition(out: &mut Vec<u8>, track: TrackId, definition: &[u8]) {
    for _ in 0..COPIES {
        frame::put(out, Kind::Track, &track.0.to_le_bytes(), definition);
    }
}

/// A track as the log needs it.
#[derive(Clone)]
pub(crate) struct Definition {
    id: TrackId,
    bytes: Arc<[u8]>,
}

impl Definition {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            id: track::id_of(&bytes),
            bytes: bytes.into(),
        }
    }
}

/// Rows that are written together.
#[derive(Default)]
pub(crate) struct Batch {
    body: Vec<u8>,
    tracks: Vec<Definition>,
    rows: u64,
    /// Midpoints of the first and the last row.
    times: Option<(u64, u64)>,
}

impl Batch {
    pub(crate) fn push(&mut self, track: &Definition, second: &Second<'_>) {
        row::put(&mut self.body, track.id, second);
        if self.tracks.iter().all(|known| known.id != track.id) {
            self.tracks.push(track.clone());
        }
        self.rows += 1;
        let at = second.span.midpoint();
        self.times = Some(
            self.times
                .map_or((at, at), |(first, last)| (first.min(at), last.max(at))),
        );
    }

    /// The frame of these rows; `None` if there are none.
    fn finish(self, epoch: Epoch, offset: Offset) -> Option<Waiting> {
        let (first, last) = self.times?;
        let meta = row::Meta {
            epoch,
            offset,
            first,
            last,
        };
        let mut frame = Vec::with_capacity(self.body.len() + frame::MOST_HEAD);
        frame::put(&mut frame, Kind::Rows, &meta.encode(), &self.body);
        Some(Waiting {
            frame,
            tracks: self.tracks,
            rows: self.rows,
            first,
            last,
            wall: meta.wall().0,
        })
    }
}

/// A frame that is not written yet.
struct Waiting {
    frame: Vec<u8>,
    tracks: Vec<Definition>,
    rows: u64,
    first: u64,
    last: u64,
    /// Wall time of the first row, in microseconds.
    wall: i64,
}

/// The log that is being written, and what waits to be.
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    current: Option<Current>,
    /// Logs that are complete and not yet sealed, oldest first.
    complete: VecDeque<Complete>,
    /// Number of the next log.
    next: u64,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    most_waiting: usize,
    /// Rows that were written, and that found no room to wait in.
    pub(crate) written: u64,
    pub(crate) lost: u64,
}

/// A log that is not written any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Complete {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    /// Least wall time of a row, in microseconds.
    pub(crate) oldest: Option<i64>,
}

struct Current {
    number: u64,
    tail: Tail,
    /// Tracks whose definitions it has.
    defined: HashSet<TrackId>,
    first: u64,
    last: u64,
    oldest: i64,
    /// Its name survives a power loss.
    named: bool,
}

impl Log {
    pub(crate) fn new(disk: Arc<dyn Disk>, most_waiting: usize) -> Self {
        Self {
            disk,
            current: None,
            complete: VecDeque::new(),
            next: 1,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            most_waiting,
            written: 0,
            lost: 0,
        }
    }

    /// Goes on behind the logs that were found, all of whose numbers are below `next`.
    pub(crate) fn resume(&mut self, complete: Vec<Complete>, next: u64) {
        self.complete = complete.into();
        self.next = next;
    }

    pub(crate) fn oldest_complete(&self) -> Option<Complete> {
        self.complete.front().copied()
    }

    pub(crate) fn forget_oldest_complete(&mut self) {
        self.complete.pop_front();
    }

    /// Bytes of all logs.
    pub(crate) fn bytes(&self) -> u64 {
        let complete: u64 = self.complete.iter().map(|log| log.bytes).sum();
        complete + self.length()
    }

    /// Least wall time of a row in all logs, in microseconds.
    pub(crate) fn oldest(&self) -> Option<i64> {
        let complete = self.complete.iter().filter_map(|log| log.oldest);
        let current = self.current.iter().map(|current| current.oldest);
        complete.chain(current).min()
    }

    /// Bytes of frames that are not written yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Bytes of the log that is being written.
    pub(crate) fn length(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.tail.length())
    }

    /// Microseconds that the log being written covers.
    pub(crate) fn covers(&self) -> u64 {
        self.current
            .as_ref()
            .map_or(0, |current| current.last.saturating_sub(current.first))
    }

    /// Queues rows; the oldest that wait make room for them.
    pub(crate) fn push(&mut self, batch: Batch, epoch: Epoch, offset: Offset) {
        let Some(waiting) = batch.finish(epoch, offset) else {
            return;
        };
        self.waiting_bytes += waiting.frame.len();
        self.waiting.push_back(waiting);
        while self.waiting_bytes > self.most_waiting {
            let Some(oldest) = self.waiting.pop_front() else {
                return;
            };
            self.waiting_bytes -= oldest.frame.len();
            self.lost += oldest.rows;
        }
    }

    /// Writes all that waits, as far as the disk takes it.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        while let Some(waiting) = self.waiting.pop_front() {
            if let Err(error) = self.write_one(&waiting) {
                self.waiting.push_front(waiting);
                return Err(error);
            }
            self.written += waiting.rows;
            self.waiting_bytes -= waiting.frame.len();
        }
        Ok(())
    }

    fn write_one(&mut self, waiting: &Waiting) -> io::Result<()> {
        let current = match &mut self.current {
            Some(current) => current,
            None => self
                .current
                .insert(Current::create(&*self.disk, self.next, waiting)?),
        };
        let written = current.append(waiting);
        if current.tail.is_broken() {
            self.complete();
        }
        written
    }

    /// Makes what was written survive a power loss.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        let synced = current.sync(&*self.disk);
        if current.tail.is_broken() {
            self.complete();
        }
        synced
    }

    /// Ends the log that is being written; the next row begins another.
    pub(crate) fn complete(&mut self) {
        if let Some(current) = self.current.take() {
            self.complete.push_back(Complete {
                number: current.number,
                bytes: current.tail.length(),
                oldest: Some(current.oldest),
            });
            self.next = current.number + 1;
        }
    }
}

impl Current {
    fn create(disk: &dyn Disk, number: u64, waiting: &Waiting) -> io::Result<Self> {
        Ok(Self {
            number,
            tail: Tail::open(disk, &Numbered::Log.path(number), 0)?,
            defined: HashSet::new(),
            first: waiting.first,
            last: waiting.first,
            oldest: waiting.wall,
            named: false,
        })
    }

    fn append(&mut self, waiting: &Waiting) -> io::Result<()> {
        let new: Vec<&Definition> = waiting
            .tracks
            .iter()
            .filter(|track| !self.defined.contains(&track.id))
            .collect();
        if new.is_empty() {
            self.tail.append(&waiting.frame)?;
        } else {
            let mut bytes = Vec::new();
            for track in &new {
                put_definition(&mut bytes, track.id, &track.bytes);
            }
            bytes.extend_from_slice(&waiting.frame);
            self.tail.append(&bytes)?;
            self.defined.extend(new.iter().map(|track| track.id));
        }
        self.last = waiting.last;
        self.oldest = self.oldest.min(waiting.wall);
        Ok(())
    }

    fn sync(&mut self, disk: &dyn Disk) -> io::Result<()> {
        self.tail.sync()?;
        if !self.named {
            disk.sync_folder(Numbered::Log.folder())?;
            self.named = true;
        }
        Ok(())
    }
}
