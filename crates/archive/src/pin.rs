//! Pins: full-rate rows around something that happened, each in a file of its own that eviction treats apart.

use crate::block::Compressor;
use crate::contents::{Contents, put_index};
use crate::damage::OpenError;
use crate::files::Disk;
use crate::frame::{self, Kind};
use crate::layout::{self, PINS};
use crate::log::put_definition;
use crate::record::{Record, Refused};
use crate::row::{self, Unpacked};
use crate::seal::Blocks;
use crate::tail::Tail;
use crate::time::{Epoch, Offset, Span};
use crate::track::Track;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Rows of one track, as they were read.
#[derive(Clone, Copy, Debug)]
pub struct FullRate<'a> {
    /// Whose.
    pub track: &'a Track,
    /// All of one width, that of the track.
    pub rows: &'a [ring::Row],
}

/// Why nothing was pinned.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// It cannot be kept, whatever the disk says.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The disk does not take it; nothing is left of it, and an earlier pin of the same id is as it was.
    #[error("the archive's disk does not take a pin: {0}")]
    Disk(#[from] io::Error),
}

/// The clocks as they are when something is pinned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) epoch: Epoch,
    pub(crate) offset: Offset,
}

/// The pins of an archive, in the hands of its writer.
pub(crate) struct Pins {
    disk: Arc<dyn Disk>,
    most_bytes: u64,
    /// Oldest first.
    kept: VecDeque<Kept>,
}

struct Kept {
    id: String,
    bytes: u64,
    began: i64,
}

impl Pins {
    pub(crate) fn open(disk: Arc<dyn Disk>, most_bytes: u64) -> Result<Self, OpenError> {
        // One that a crash interrupted. If it cannot be removed, the next pin replaces it.
        let _ = disk.remove(&layout::new_pin());
        let list = OpenError::io("list the archive's pins");
        let mut kept = layout::pins(&*disk)
            .map_err(list)?
            .into_iter()
            .map(|id| look(&*disk, id))
            .collect::<Result<Vec<_>, _>>()?;
        kept.sort_by_key(|pin| pin.began);
        Ok(Self {
            disk,
            most_bytes,
            kept: kept.into(),
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.kept.iter().map(|pin| pin.bytes).sum()
    }

    /// Writes a pin as a whole or not at all, then lets go of the oldest others until the limit is kept.
    pub(crate) fn put(
        &mut self,
        record: &Record,
        rows: &[FullRate<'_>],
        clocks: Clocks,
    ) -> Result<(), PinError> {
        self.replace(record, &[], rows, clocks)
    }

    /// The same, with the rows of the pin so far before the new ones.
    pub(crate) fn extend(
        &mut self,
        record: &Record,
        rows: &[FullRate<'_>],
        clocks: Clocks,
    ) -> Result<(), PinError> {
        let former = former_rows(&*self.disk, &layout::pin(&record.id))?;
        self.replace(record, &former, rows, clocks)
    }

    fn replace(
        &mut self,
        record: &Record,
        former: &[u8],
        rows: &[FullRate<'_>],
        clocks: Clocks,
    ) -> Result<(), PinError> {
        record.check()?;
        let bytes = encode(record, former, rows, clocks)?;
        let (path, new) = (layout::pin(&record.id), layout::new_pin());
        let written = write(&*self.disk, &new, &bytes).and_then(|()| self.disk.rename(&new, &path));
        if let Err(error) = written {
            let _ = self.disk.remove(&new);
            return Err(error.into());
        }
        self.disk.sync_folder(PINS)?;
        self.kept.retain(|pin| pin.id != record.id);
        self.evict(bytes.len() as u64)?;
        let at = self.kept.partition_point(|pin| pin.began <= record.began);
        let pin = Kept {
            id: record.id.clone(),
            bytes: bytes.len() as u64,
            began: record.began,
        };
        self.kept.insert(at, pin);
        Ok(())
    }

    fn evict(&mut self, more: u64) -> io::Result<()> {
        while self.bytes() + more > self.most_bytes {
            let Some(oldest) = self.kept.front() else {
                return Ok(());
            };
            self.disk.remove(&layout::pin(&oldest.id))?;
            self.kept.pop_front();
        }
        Ok(())
    }
}

fn look(disk: &dyn Disk, id: String) -> Result<Kept, OpenError> {
    let path = layout::pin(&id);
    let source = disk.open(&path).map_err(OpenError::io(format!("open {path}")))?;
    let bytes = source
        .length()
        .map_err(OpenError::io(format!("measure {path}")))?;
    let contents = Contents::load(&path, &*source)?;
    // One whose record is damaged is the first to go.
    let began = contents
        .entries
        .iter()
        .find(|entry| entry.kind == Kind::Record)
        .and_then(|entry| Record::decode(&entry.meta, &[]).ok())
        .map_or(i64::MIN, |record| record.began);
    Ok(Kept { id, bytes, began })
}

fn write(disk: &dyn Disk, path: &str, bytes: &[u8]) -> io::Result<()> {
    let mut tail = Tail::open(disk, path, 0)?;
    tail.append(bytes)?;
    tail.sync()
}

/// The frames of a pin that define tracks and hold rows, as far as they can be read.
fn former_rows(disk: &dyn Disk, path: &str) -> io::Result<Vec<u8>> {
    let bytes = disk.open(path)?.read()?;
    let entries = Contents::scan(path, &bytes).map_err(io::Error::other)?.entries;
    let kept = entries
        .iter()
        .filter(|entry| matches!(entry.kind, Kind::Track | Kind::Block));
    Ok(kept.flat_map(|entry| &bytes[entry.frame()]).copied().collect())
}

fn encode(record: &Record, former: &[u8], rows: &[FullRate<'_>], clocks: Clocks) -> io::Result<Vec<u8>> {
    let mut compressor = Compressor::new()?;
    let mut out = Vec::new();
    record.put(&mut out);
    out.extend_from_slice(former);
    for one in rows {
        put_definition(&mut out, one.track.id(), &one.track.encode());
        for (meta, body) in blocks(*one, clocks, &mut compressor)? {
            frame::put(&mut out, Kind::Block, &meta.encode(), &body);
        }
    }
    let entries = Contents::scan("", &out).map_err(io::Error::other)?.entries;
    let at = out.len() as u64;
    put_index(&mut out, &mut compressor, &entries, at)?;
    Ok(out)
}

fn blocks(
    rows: FullRate<'_>,
    clocks: Clocks,
    compressor: &mut Compressor,
) -> io::Result<Vec<(crate::block::Meta, Vec<u8>)>> {
    let mut made = Vec::new();
    let mut blocks = Blocks::new(0, rows.track.id(), compressor, &mut made);
    for row in rows.rows {
        let span = Span::around(row.window);
        let cells = Unpacked {
            began: span.began,
            length: span.length,
            columns: row.values.len(),
            cells: row.values.to_vec(),
        };
        let meta = row::Meta {
            epoch: clocks.epoch,
            offset: clocks.offset,
            first: span.midpoint(),
            last: span.midpoint(),
        };
        blocks.push(&cells, &meta)?;
    }
    blocks.flush()?;
    Ok(made)
}
