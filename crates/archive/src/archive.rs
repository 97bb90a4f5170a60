//! An archive as it is read: beside its writer, in another process, or copied elsewhere.

use crate::block;
use crate::bytes::Malformed;
use crate::contents::{self, Contents, Entry};
use crate::damage::{Cause, Damage, OpenError};
use crate::files::{self, Disk, Folder, Source};
use crate::frame::Kind;
use crate::layout::{self, Numbered};
use crate::logged::Logged;
use crate::record::Record;
use crate::segments::SealMeta;
use crate::time::{micros, nanos};
use crate::track::{self, Track, TrackId};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// What was in an archive when it was opened. It stays readable while its writer goes on and lets go of the oldest.
pub struct Archive {
    pub(crate) files: Vec<OpenFile>,
    pub(crate) logs: Vec<Logged>,
    pub(crate) tracks: BTreeMap<TrackId, Arc<Track>>,
    /// In the order in which the rows were written.
    pub(crate) blocks: Vec<Block>,
    /// Read when records are asked for, and not before.
    record_files: Vec<OpenFile>,
    pins: Vec<String>,
    damages: Vec<Damage>,
}

/// A file that is read from when something in it is needed.
pub(crate) struct OpenFile {
    pub(crate) name: String,
    pub(crate) source: Arc<dyn Source>,
}

/// A block that can be read.
pub(crate) struct Block {
    pub(crate) file: usize,
    pub(crate) entry: Entry,
    pub(crate) meta: block::Meta,
}

/// A track that has rows in the archive, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackSpan {
    /// What it is.
    pub track: Arc<Track>,
    /// Wall time of its first row, in nanoseconds since 1970.
    pub first: i64,
    /// Wall time of its last row. Between the two there may be gaps.
    pub last: i64,
    /// How many rows there are.
    pub rows: u64,
}

impl Archive {
    /// Opens the archive in a folder, or a single pin, to look things up.
    ///
    /// # Errors
    /// If there is none, it cannot be read at all, or another version of Rocewatch wrote it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        if files::is_folder(&path.join(Numbered::Segment.folder())) {
            return Self::on(&Folder::new(path));
        }
        if files::is_folder(path) {
            return Err(OpenError::None(path.to_owned()));
        }
        let shown = path.display();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| {
            OpenError::io(format!("open {shown}"))(std::io::ErrorKind::InvalidFilename.into())
        })?;
        Self::one_file(&Folder::new(path.parent().unwrap_or(path)), name)
    }

    /// Where the pin of this id is, in the archive in `folder`. A copy of it can be opened by itself.
    #[must_use]
    pub fn pin_path(folder: &Path, id: &str) -> std::path::PathBuf {
        folder.join(layout::pin(id))
    }

    /// Opens a pin of the archive in `folder`.
    ///
    /// # Errors
    /// If there is none of this id, or it cannot be read.
    pub fn open_pin(folder: &Path, id: &str) -> Result<Self, OpenError> {
        Self::one_file(&Folder::new(folder), &layout::pin(id))
    }

    /// Reads a file of an archive that came by other ways than a folder; `name` is what damages call it.
    ///
    /// # Errors
    /// If another version of Rocewatch wrote it. Whatever else is wrong with it is damage.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::of_file(name, Box::new(bytes))
    }

    pub(crate) fn one_file(disk: &dyn Disk, name: &str) -> Result<Self, OpenError> {
        let source = disk.open(name).map_err(OpenError::io(format!("open {name}")))?;
        Self::of_file(name, source)
    }

    /// The rows and records of one file, whichever it is.
    fn of_file(name: &str, source: Box<dyn Source>) -> Result<Self, OpenError> {
        let mut archive = Self::empty();
        let contents = Contents::load(name, &*source)?;
        if of_kind(&contents, Kind::Rows).next().is_some() {
            let bytes = source.read().map_err(OpenError::io(format!("read {name}")))?;
            archive.logs.push(Logged::new(name.to_owned(), bytes)?);
            archive.define_from_logs();
        } else {
            let source: Arc<dyn Source> = source.into();
            archive.record_files.push(OpenFile {
                name: name.to_owned(),
                source: Arc::clone(&source),
            });
            archive.take_segment(name.to_owned(), source, contents);
        }
        Ok(archive)
    }

    pub(crate) fn on(disk: &dyn Disk) -> Result<Self, OpenError> {
        let mut archive = Self::empty();
        // Logs first: what is sealed and removed after that is in memory, what was removed before is in the segments.
        let mut logs = archive.open_logs(disk)?;
        for sealed in archive.open_segments(disk)? {
            logs.remove(&sealed);
        }
        archive.open_records(disk)?;
        archive.pins = layout::pins(disk).map_err(OpenError::io("list the archive's pins"))?;
        archive.drop_what_is_there_twice(&logs);
        archive.define_from_logs();
        Ok(archive)
    }

    fn empty() -> Self {
        Self {
            files: Vec::new(),
            logs: Vec::new(),
            tracks: BTreeMap::new(),
            blocks: Vec::new(),
            record_files: Vec::new(),
            pins: Vec::new(),
            damages: Vec::new(),
        }
    }

    /// Gives the numbers of the logs that can be read.
    fn open_logs(&mut self, disk: &dyn Disk) -> Result<HashSet<u64>, OpenError> {
        let mut open = HashSet::new();
        let numbers = Numbered::Log.list(disk);
        for number in numbers.map_err(OpenError::io("list the archive's logs"))? {
            let name = Numbered::Log.path(number);
            let Some(source) = still_there(disk, &name)? else {
                continue;
            };
            match source.read() {
                Ok(bytes) => {
                    self.logs.push(Logged::new(name, bytes)?);
                    open.insert(number);
                }
                Err(error) => {
                    let length = source.length().unwrap_or(0);
                    self.damages.push(Damage::unreadable(&name, length, &error));
                }
            }
        }
        Ok(open)
    }

    /// Gives the numbers of the logs that are sealed.
    fn open_segments(&mut self, disk: &dyn Disk) -> Result<HashSet<u64>, OpenError> {
        let mut sealed = HashSet::new();
        let numbers = Numbered::Segment.list(disk);
        for number in numbers.map_err(OpenError::io("list the archive's segments"))? {
            let name = Numbered::Segment.path(number);
            if let Some(source) = still_there(disk, &name)? {
                let contents = Contents::load(&name, &*source)?;
                sealed.extend(SealMeta::among(&contents.entries).map(|seal| seal.number));
                self.take_segment(name, source.into(), contents);
            }
        }
        Ok(sealed)
    }

    fn open_records(&mut self, disk: &dyn Disk) -> Result<(), OpenError> {
        let numbers = Numbered::Records.list(disk);
        for number in numbers.map_err(OpenError::io("list the archive's records"))? {
            let name = Numbered::Records.path(number);
            if let Some(source) = still_there(disk, &name)? {
                self.record_files.push(OpenFile {
                    name,
                    source: source.into(),
                });
            }
        }
        Ok(())
    }

    fn take_segment(&mut self, name: String, source: Arc<dyn Source>, contents: Contents) {
        for entry in of_kind(&contents, Kind::Track) {
            self.define(&name, &*source, entry);
        }
        let file = self.files.len();
        self.damages.extend(contents.damages);
        for entry in contents.entries {
            if entry.kind != Kind::Block {
                continue;
            }
            match block::Meta::decode(&entry.meta) {
                Ok(meta) => self.blocks.push(Block { file, entry, meta }),
                Err(Malformed(why)) => self.damages.push(damage(&name, &entry, why)),
            }
        }
        self.files.push(OpenFile { name, source });
    }

    fn define(&mut self, name: &str, source: &dyn Source, entry: &Entry) {
        let claimed = crate::bytes::Input::new(&entry.meta).u64().map(TrackId);
        if claimed.is_ok_and(|id| self.tracks.contains_key(&id)) {
            return;
        }
        let definition = contents::body(name, source, entry).and_then(|body| {
            let track = Track::decode(&body).map_err(|Malformed(why)| damage(name, entry, why))?;
            Ok((track::id_of(&body), track))
        });
        match definition {
            Ok((id, track)) => {
                self.tracks.insert(id, Arc::new(track));
            }
            Err(damage) => self.damages.push(damage),
        }
    }

    fn define_from_logs(&mut self) {
        for log in &self.logs {
            self.damages.extend(log.damages.iter().cloned());
            for (id, definition) in log.definitions() {
                if let Ok(track) = Track::decode(definition) {
                    self.tracks.entry(id).or_insert_with(|| Arc::new(track));
                }
            }
        }
    }

    /// Where a log is sealed its blocks count: it may have grown after it was read, until it was sealed and others after it.
    /// Where it is not, the log counts, and not what there may be of its blocks. Of blocks that are there twice the later
    /// count: the first seal was interrupted, by a crash or a full disk.
    fn drop_what_is_there_twice(&mut self, unsealed: &HashSet<u64>) {
        let names: HashSet<String> = unsealed.iter().map(|log| Numbered::Log.path(*log)).collect();
        self.logs.retain(|log| names.contains(&log.name));
        self.blocks.retain(|block| !unsealed.contains(&block.meta.seal));
        let key = |block: &Block| {
            (
                block.meta.seal,
                block.meta.first,
                block.meta.part,
                block.meta.track,
            )
        };
        // It keeps the order of those that are alike, and the last of them are to stay.
        self.blocks.reverse();
        self.blocks.sort_by_key(key);
        self.blocks.dedup_by_key(|block| key(block));
    }

    /// What could not be read when the archive was opened. More may be found when rows are looked up.
    #[must_use]
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Every track, by port and source, then by time.
    #[must_use]
    pub fn tracks(&self) -> Vec<TrackSpan> {
        let mut spans: BTreeMap<TrackId, TrackSpan> = BTreeMap::new();
        for block in &self.blocks {
            self.widen(
                &mut spans,
                block.meta.track,
                block.meta.wall,
                block.meta.rows.into(),
            );
        }
        for row in self.logs.iter().flat_map(|log| log.rows(|_| true)).flatten() {
            self.widen(&mut spans, row.track, row.meta().wall(), 1);
        }
        let mut spans: Vec<_> = spans.into_values().collect();
        spans.sort_by(|a, b| {
            let key = |span: &TrackSpan| (span.track.port.clone(), span.track.source, span.first);
            key(a).cmp(&key(b))
        });
        spans
    }

    fn widen(&self, spans: &mut BTreeMap<TrackId, TrackSpan>, id: TrackId, wall: (i64, i64), rows: u64) {
        let Some(track) = self.tracks.get(&id) else {
            return;
        };
        let span = spans.entry(id).or_insert_with(|| TrackSpan {
            track: Arc::clone(track),
            first: i64::MAX,
            last: i64::MIN,
            rows: 0,
        });
        span.first = span.first.min(nanos(wall.0));
        span.last = span.last.max(nanos(wall.1));
        span.rows += rows;
    }

    /// The newest version of every record that was going on at some time of `from..=to`, by the time they began; and what
    /// could not be read.
    ///
    /// # Errors
    /// If another version of Rocewatch wrote them.
    pub fn records(&self, from: i64, to: i64) -> Result<(Vec<Record>, Vec<Damage>), OpenError> {
        let mut damages = Vec::new();
        let mut newest: BTreeMap<String, Record> = BTreeMap::new();
        for file in &self.record_files {
            for record in file.records(&mut damages)? {
                newest.insert(record.id.clone(), record);
            }
        }
        let mut records: Vec<Record> = newest
            .into_values()
            .filter(|record| record.overlaps(from, to))
            .collect();
        records.sort_by_key(|record| record.began);
        Ok((records, damages))
    }

    /// Ids of the pins.
    #[must_use]
    pub fn pins(&self) -> &[String] {
        &self.pins
    }
}

impl OpenFile {
    fn records(&self, damages: &mut Vec<Damage>) -> Result<Vec<Record>, OpenError> {
        let contents = Contents::load(&self.name, &*self.source)?;
        let entries = of_kind(&contents, Kind::Record);
        let read = entries.map(|entry| {
            let body = contents::body(&self.name, &*self.source, entry)?;
            Record::decode(&entry.meta, &body).map_err(|Malformed(why)| damage(&self.name, entry, why))
        });
        let mut records = Vec::new();
        for record in read {
            match record {
                Ok(record) => records.push(record),
                Err(damage) => damages.push(damage),
            }
        }
        damages.extend(contents.damages);
        Ok(records)
    }
}

fn of_kind(contents: &Contents, kind: Kind) -> impl Iterator<Item = &Entry> {
    contents.entries.iter().filter(move |entry| entry.kind == kind)
}

/// A file that was listed; `None` if its writer has removed it since.
fn still_there(disk: &dyn Disk, name: &str) -> Result<Option<Box<dyn Source>>, OpenError> {
    match disk.open(name) {
        Ok(source) => Ok(Some(source)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenError::io(format!("open {name}"))(error)),
    }
}

pub(crate) fn damage(name: &str, entry: &Entry, why: &str) -> Damage {
    Damage {
        file: name.to_owned(),
        at: entry.at,
        bytes: entry.length,
        cause: Cause::Damaged,
        why: why.to_owned(),
    }
}

/// A range of wall times as the archive keeps them, which contains all of it.
pub(crate) fn range(from: i64, to: i64) -> (i64, i64) {
    (micros(from), micros(to))
}
