//! From a log to blocks: the same rows, by track and column, compressed.

use crate::block::{self, Compressor, Table};
use crate::bytes::Malformed;
use crate::contents::Contents;
use crate::damage::{Cause, Damage};
use crate::log::LogRows;
use crate::row::{self, Cells};
use crate::time::Epoch;
use crate::track::TrackId;
use std::collections::BTreeMap;
use std::io;

/// What a log becomes.
pub(crate) struct Sealed {
    /// Definitions of the tracks that have blocks.
    pub(crate) definitions: BTreeMap<TrackId, Vec<u8>>,
    pub(crate) blocks: Vec<(block::Meta, Vec<u8>)>,
    /// Microseconds from the first to the last row.
    pub(crate) recorded: u64,
    /// What of the log could not be read.
    pub(crate) damages: Vec<Damage>,
}

/// Turns log `number` into blocks.
///
/// # Errors
/// If the compressor fails, for want of memory.
pub(crate) fn seal(
    file: &str,
    number: u64,
    bytes: &[u8],
    contents: &Contents,
    compressor: &mut Compressor,
) -> io::Result<Sealed> {
    let log = LogRows::new(bytes, &contents.entries);
    let mut sealed = Sealed {
        definitions: BTreeMap::new(),
        blocks: Vec::new(),
        recorded: recorded(&log),
        damages: contents.damages.clone(),
    };
    let places = locate(file, &log, &mut sealed.damages);
    for (track, rows) in places {
        let Some((_, definition)) = log.definitions.iter().find(|(known, _)| *known == track) else {
            sealed.damages.push(undefined(file, &log, &rows));
            continue;
        };
        sealed.definitions.insert(track, definition.to_vec());
        let mut blocks = Blocks::new(number, track, compressor, &mut sealed.blocks);
        let mut cells = Cells::default();
        for (frame, bytes) in rows {
            let meta = &log.frames[frame].meta;
            match row::decode(bytes, &mut cells) {
                Ok(()) => blocks.push(&cells, meta)?,
                Err(Malformed(why)) => sealed.damages.push(damage(file, &log, frame, bytes.len(), why)),
            }
        }
        blocks.flush()?;
    }
    Ok(sealed)
}

fn recorded(log: &LogRows<'_>) -> u64 {
    let first = log.frames.iter().map(|frame| frame.meta.first).min();
    let last = log.frames.iter().map(|frame| frame.meta.last).max();
    last.unwrap_or(0).saturating_sub(first.unwrap_or(0))
}

/// The rows of one track: the frame that each is in, and its bytes.
type Rows<'a> = Vec<(usize, &'a [u8])>;

fn locate<'a>(file: &str, log: &LogRows<'a>, damages: &mut Vec<Damage>) -> BTreeMap<TrackId, Rows<'a>> {
    let mut places: BTreeMap<TrackId, Rows<'a>> = BTreeMap::new();
    for (number, frame) in log.frames.iter().enumerate() {
        for row in row::each(frame.body) {
            match row {
                Ok((track, bytes)) => places.entry(track).or_default().push((number, bytes)),
                Err(Malformed(why)) => damages.push(damage(file, log, number, frame.body.len(), why)),
            }
        }
    }
    places
}

fn damage(file: &str, log: &LogRows<'_>, frame: usize, bytes: usize, why: &str) -> Damage {
    Damage {
        file: file.to_owned(),
        at: log.frames[frame].at,
        bytes: bytes as u64,
        cause: Cause::Damaged,
        why: why.to_owned(),
    }
}

fn undefined(file: &str, log: &LogRows<'_>, rows: &Rows<'_>) -> Damage {
    let bytes = rows.iter().map(|(_, bytes)| bytes.len()).sum();
    let first = rows.first().map_or(0, |(frame, _)| *frame);
    damage(file, log, first, bytes, "all definitions of a track are damaged")
}

/// The blocks of one track.
pub(crate) struct Blocks<'a> {
    seal: u64,
    track: TrackId,
    table: Table,
    epoch: Option<Epoch>,
    compressor: &'a mut Compressor,
    made: &'a mut Vec<(block::Meta, Vec<u8>)>,
    parts: u32,
}

impl<'a> Blocks<'a> {
    /// Blocks of `track` in a seal, added to `made`.
    pub(crate) fn new(
        seal: u64,
        track: TrackId,
        compressor: &'a mut Compressor,
        made: &'a mut Vec<(block::Meta, Vec<u8>)>,
    ) -> Self {
        Self {
            seal,
            track,
            table: Table::default(),
            epoch: None,
            compressor,
            made,
            parts: 0,
        }
    }

    pub(crate) fn push(&mut self, cells: &Cells, meta: &row::Meta) -> io::Result<()> {
        if self.table.is_full_for(cells) || self.epoch.is_some_and(|epoch| epoch != meta.epoch) {
            self.flush()?;
        }
        self.epoch = Some(meta.epoch);
        self.table.push(cells, meta.offset);
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let table = std::mem::take(&mut self.table);
        let Some(epoch) = self.epoch else {
            return Ok(());
        };
        if let Some(block) = table.encode(self.compressor, self.seal, self.track, self.parts, epoch)? {
            self.made.push(block);
            self.parts += 1;
        }
        Ok(())
    }
}
