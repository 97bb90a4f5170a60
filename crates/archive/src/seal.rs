//! From a log to blocks: the same rows, by track and column, compressed.

use crate::block::{self, Compressor, Table};
use crate::bytes::Malformed;
use crate::damage::Damage;
use crate::logged::{Logged, LoggedRow};
use crate::row::{self, Unpacked};
use crate::time::Epoch;
use crate::track::TrackId;
use std::collections::BTreeMap;
use std::io;

/// What a log becomes.
pub(crate) struct Sealed<'a> {
    /// Definitions of the tracks that have blocks.
    pub(crate) definitions: BTreeMap<TrackId, &'a [u8]>,
    pub(crate) blocks: Vec<(block::Meta, Vec<u8>)>,
    /// What of the log could not be read.
    pub(crate) damages: Vec<Damage>,
}

/// Turns log `number` into blocks.
///
/// # Errors
/// If the compressor fails, for want of memory.
pub(crate) fn seal<'a>(number: u64, log: &'a Logged, compressor: &mut Compressor) -> io::Result<Sealed<'a>> {
    let mut sealed = Sealed {
        definitions: BTreeMap::new(),
        blocks: Vec::new(),
        damages: log.damages.clone(),
    };
    let mut tracks: BTreeMap<TrackId, Vec<LoggedRow<'_>>> = BTreeMap::new();
    for row in log.rows(|_| true) {
        match row {
            Ok(row) => tracks.entry(row.track).or_default().push(row),
            Err(damage) => sealed.damages.push(damage),
        }
    }
    for (track, rows) in tracks {
        let Some(definition) = log.definition(track) else {
            sealed.damages.push(undefined(log, &rows));
            continue;
        };
        sealed.definitions.insert(track, definition);
        let mut blocks = Blocks::new(number, track, compressor, &mut sealed.blocks);
        blocks.expect(rows.len());
        let mut cells = Unpacked::default();
        for row in rows {
            match row::decode(row.bytes, &mut cells) {
                Ok(()) => blocks.push(&cells, row.meta())?,
                Err(why) => sealed.damages.push(log.damage(row.at(), row.bytes.len(), why)),
            }
        }
        blocks.flush()?;
    }
    Ok(sealed)
}

fn undefined(log: &Logged, rows: &[LoggedRow<'_>]) -> Damage {
    let bytes = rows.iter().map(|row| row.bytes.len()).sum();
    let at = rows.first().map_or(0, LoggedRow::at);
    log.damage(at, bytes, Malformed("all definitions of a track are damaged"))
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

    /// So many rows are to come. Tables are large, and room beyond that would be memory for nothing.
    pub(crate) fn expect(&mut self, rows: usize) {
        self.table.expect(rows);
    }

    pub(crate) fn push(&mut self, cells: &Unpacked, meta: &row::Meta) -> io::Result<()> {
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
