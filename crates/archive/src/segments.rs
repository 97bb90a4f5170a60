//! Sealed blocks in append-only segments: writing them, and letting go of the oldest.

use crate::block::{self, Compressor};
use crate::bytes::{Input, Malformed};
use crate::contents::{Contents, Entry, put_index};
use crate::damage::{Damage, OpenError};
use crate::files::Disk;
use crate::frame::{self, Kind};
use crate::layout::Numbered;
use crate::log::put_definition;
use crate::logged::Logged;
use crate::seal::{Sealed, seal};
use crate::tail::Tail;
use crate::track::TrackId;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;

/// Says that all blocks of a log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SealMeta {
    pub(crate) number: u64,
    /// Microseconds from the first to the last row.
    recorded: u64,
}

impl SealMeta {
    fn encode(self) -> Vec<u8> {
        [self.number.to_le_bytes(), self.recorded.to_le_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Input::new(bytes);
        Ok(Self {
            number: input.u64()?,
            recorded: input.u64()?,
        })
    }

    /// The seals among a file's frames.
    pub(crate) fn among(entries: &[Entry]) -> impl Iterator<Item = Self> {
        entries
            .iter()
            .filter(|entry| entry.kind == Kind::Seal)
            .filter_map(|entry| Self::decode(&entry.meta).ok())
    }
}

/// How large and how long segments become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measures {
    /// Bytes of a segment, roughly.
    pub(crate) segment_bytes: u64,
    /// Microseconds that a segment covers, roughly.
    pub(crate) segment_recorded: u64,
    /// Bytes of all segments.
    pub(crate) bytes: u64,
    /// Microseconds that all segments cover.
    pub(crate) recorded: u64,
}

/// A segment that is not appended to.
#[derive(Clone, Copy, Debug)]
struct Finished {
    number: u64,
    bytes: u64,
    recorded: u64,
    /// Least wall time of a row, in microseconds.
    oldest: Option<i64>,
}

struct Current {
    number: u64,
    tail: Tail,
    entries: Vec<Entry>,
    defined: HashSet<TrackId>,
    recorded: u64,
    oldest: Option<i64>,
    /// Its name survives a power loss.
    named: bool,
}

/// All segments of an archive, in the hands of its writer.
pub(crate) struct Segments {
    disk: Arc<dyn Disk>,
    measures: Measures,
    finished: VecDeque<Finished>,
    current: Option<Current>,
    /// Number of the next segment.
    next: u64,
    compressor: Compressor,
}

/// What is found when the segments are opened.
pub(crate) struct Opened {
    pub(crate) segments: Segments,
    /// Logs that are sealed.
    pub(crate) sealed: HashSet<u64>,
    /// The highest number of a log that anything was made of.
    pub(crate) last_log: u64,
    pub(crate) damages: Vec<Damage>,
}

impl Segments {
    pub(crate) fn open(disk: Arc<dyn Disk>, measures: Measures) -> Result<Opened, OpenError> {
        let compressor = Compressor::new().map_err(OpenError::io("set up zstd"))?;
        let numbers = Numbered::Segment
            .list(&*disk)
            .map_err(OpenError::io("list the archive's segments"))?;
        let mut opened = Opened {
            segments: Self {
                disk,
                measures,
                finished: VecDeque::new(),
                current: None,
                next: numbers.last().map_or(1, |last| last + 1),
                compressor,
            },
            sealed: HashSet::new(),
            last_log: 0,
            damages: Vec::new(),
        };
        for number in &numbers {
            opened.take_in(*number, Some(number) == numbers.last())?;
        }
        Ok(opened)
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        let finished: u64 = self.finished.iter().map(|segment| segment.bytes).sum();
        finished + self.current.as_ref().map_or(0, |current| current.tail.length())
    }

    /// Microseconds that all segments cover.
    pub(crate) fn recorded(&self) -> u64 {
        let finished = self
            .finished
            .iter()
            .map(|segment| segment.recorded)
            .fold(0, u64::saturating_add);
        finished.saturating_add(self.current.as_ref().map_or(0, |current| current.recorded))
    }

    /// Least wall time of a row in them, in microseconds.
    pub(crate) fn oldest(&self) -> Option<i64> {
        let finished = self.finished.iter().map(|segment| segment.oldest);
        let current = self.current.iter().map(|current| current.oldest);
        finished.chain(current).flatten().min()
    }

    /// Writes the blocks of log `number`, for good; gives what of it could not be read.
    pub(crate) fn seal(&mut self, number: u64, log: &Logged) -> io::Result<Vec<Damage>> {
        let sealed = seal(number, log, &mut self.compressor)?;
        if !sealed.blocks.is_empty() {
            let seal = SealMeta {
                number,
                recorded: log.covers(),
            };
            self.write(seal, &sealed)?;
        }
        Ok(sealed.damages)
    }

    fn write(&mut self, seal: SealMeta, sealed: &Sealed<'_>) -> io::Result<()> {
        let current = match &mut self.current {
            Some(current) => current,
            None => self.current.insert(Current::create(&*self.disk, self.next)?),
        };
        let written = current.append(&*self.disk, seal, sealed);
        if current.tail.is_broken() {
            self.finish(false);
        } else if written.is_ok() && current.is_full(&self.measures) {
            self.finish(true);
        }
        written
    }

    /// Lets go of the current segment. Without an index it takes longer to open, and is as good.
    fn finish(&mut self, with_index: bool) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        if with_index {
            let mut index = Vec::new();
            let at = current.tail.length();
            let made = put_index(&mut index, &mut self.compressor, &current.entries, at);
            let _ = made
                .and_then(|()| current.tail.append(&index))
                .and_then(|()| current.tail.sync());
        }
        self.next = current.number + 1;
        self.finished.push_back(Finished {
            number: current.number,
            bytes: current.tail.length(),
            recorded: current.recorded,
            oldest: current.oldest,
        });
    }

    /// Removes the oldest segments until the limits are kept, with `more` bytes beside the segments counted in.
    pub(crate) fn evict(&mut self, more: u64) -> io::Result<()> {
        while let Some(oldest) = self.finished.front().copied() {
            let too_large = self.bytes() + more > self.measures.bytes;
            let too_long = self.recorded().saturating_sub(oldest.recorded) >= self.measures.recorded;
            if !too_large && !too_long {
                return Ok(());
            }
            self.disk.remove(&Numbered::Segment.path(oldest.number))?;
            self.finished.pop_front();
        }
        Ok(())
    }
}

impl Opened {
    fn take_in(&mut self, number: u64, is_last: bool) -> Result<(), OpenError> {
        let path = Numbered::Segment.path(number);
        let disk = Arc::clone(&self.segments.disk);
        let loaded = disk
            .open(&path)
            .map_err(OpenError::io(format!("open {path}")))
            .and_then(|source| Contents::load(&path, &*source));
        let contents = loaded?;
        self.damages.extend(contents.damages.iter().cloned());
        self.sealed
            .extend(SealMeta::among(&contents.entries).map(|seal| seal.number));
        let recorded = SealMeta::among(&contents.entries)
            .map(|seal| seal.recorded)
            .fold(0, u64::saturating_add);
        self.last_log = last_log(&contents).max(self.last_log);
        let segments = &mut self.segments;
        let mut bytes = contents.end;
        if is_last && !contents.finished {
            // What a crash left behind the last frame is cut off. A disk that does not let us is left as it is.
            if let Ok(tail) = Tail::open(&*disk, &path, contents.end) {
                segments.current = Some(Current::reopen(number, tail, contents, recorded));
                return Ok(());
            }
            bytes += self.damages.last().map_or(0, |damage| damage.bytes);
        }
        segments.finished.push_back(Finished {
            number,
            bytes,
            recorded,
            oldest: oldest(&contents.entries),
        });
        Ok(())
    }
}

/// The highest number of a log among a file's seals and blocks, either of which may be damaged.
fn blocks(entries: &[Entry]) -> impl Iterator<Item = block::Meta> {
    entries
        .iter()
        .filter(|entry| entry.kind == Kind::Block)
        .filter_map(|entry| block::Meta::decode(&entry.meta).ok())
}

/// Least wall time of a row in these blocks, in microseconds.
fn oldest(entries: &[Entry]) -> Option<i64> {
    blocks(entries).map(|block| block.wall.0).min()
}

fn last_log(contents: &Contents) -> u64 {
    let blocks = blocks(&contents.entries);
    let seals = SealMeta::among(&contents.entries).map(|seal| seal.number);
    seals.chain(blocks.map(|block| block.seal)).max().unwrap_or(0)
}

impl Current {
    fn create(disk: &dyn Disk, number: u64) -> io::Result<Self> {
        let tail = Tail::open(disk, &Numbered::Segment.path(number), 0)?;
        Ok(Self {
            number,
            tail,
            entries: Vec::new(),
            defined: HashSet::new(),
            recorded: 0,
            oldest: None,
            named: false,
        })
    }

    fn reopen(number: u64, tail: Tail, contents: Contents, recorded: u64) -> Self {
        let defined = contents
            .entries
            .iter()
            .filter(|entry| entry.kind == Kind::Track)
            .filter_map(|entry| Input::new(&entry.meta).u64().ok().map(TrackId))
            .collect();
        Self {
            number,
            tail,
            oldest: oldest(&contents.entries),
            entries: contents.entries,
            defined,
            recorded,
            named: false,
        }
    }

    fn is_full(&self, measures: &Measures) -> bool {
        self.tail.length() >= measures.segment_bytes || self.recorded >= measures.segment_recorded
    }

    /// Appends the blocks of a log and the seal, in one write.
    fn append(&mut self, disk: &dyn Disk, seal: SealMeta, sealed: &Sealed<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        let new = sealed
            .definitions
            .iter()
            .filter(|(track, _)| !self.defined.contains(track));
        for (track, definition) in new {
            put_definition(&mut bytes, *track, definition);
        }
        for (meta, body) in &sealed.blocks {
            frame::put(&mut bytes, Kind::Block, &meta.encode(), body);
        }
        frame::put(&mut bytes, Kind::Seal, &seal.encode(), &[]);
        let start = self.tail.length();
        self.tail.append(&bytes)?;
        self.tail.sync()?;
        if !self.named {
            disk.sync_folder(Numbered::Segment.folder())?;
            self.named = true;
        }
        let appended = Contents::scan("", &bytes).map_err(io::Error::other)?;
        self.oldest = self.oldest.into_iter().chain(oldest(&appended.entries)).min();
        let placed = appended.entries.into_iter().map(|mut entry| {
            entry.at += start;
            entry
        });
        self.entries.extend(placed);
        self.defined.extend(sealed.definitions.keys());
        self.recorded = self.recorded.saturating_add(seal.recorded);
        Ok(())
    }
}
