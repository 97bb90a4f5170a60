//! Looking rows up.

use crate::archive::{Archive, Block, damage, range};
use crate::block;
use crate::bytes::Malformed;
use crate::contents;
use crate::damage::Damage;
use crate::logged::Logged;
use crate::rate::Code;
use crate::row::{self, Unpacked};
use crate::second::Extremes;
use crate::time::{Epoch, Offset, Span, nanos};
use crate::track::{Track, TrackId};
use model::{PortId, SourceKind};
use ring::Window;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Which rows.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Of which port.
    pub port: &'a PortId,
    /// Read where.
    pub source: SourceKind,
    /// Which counters, by name; all of them if empty. A track that lacks some has the others.
    pub columns: &'a [&'a str],
    /// From this wall time on, nanoseconds since 1970.
    pub from: i64,
    /// Up to and including this one.
    pub to: i64,
}

/// When a row was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTime {
    /// On the monotonic clock, in nanoseconds, rounded outwards to microseconds.
    pub window: Window,
    /// The middle of it on the wall clock as it was then, in nanoseconds since 1970. Where that clock was set back, the
    /// same time comes twice.
    pub wall: i64,
}

/// One counter's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Where it stands in the track.
    pub column: usize,
    /// One per row; [`model::ABSENT`] where the device had none.
    pub values: Vec<u64>,
    /// One per row: what went on inside the second, if the source was read more often and the value was there.
    pub extremes: Vec<Option<Extremes>>,
}

/// Rows of one track, in the order in which they were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Whose.
    pub track: Arc<Track>,
    /// Which zero the monotonic times count from.
    pub epoch: Epoch,
    /// When each was read.
    pub times: Vec<RowTime>,
    /// The counters that were asked for, in that order.
    pub columns: Vec<Values>,
}

/// What was found, and what could not be read.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The rows, in the order in which they were read.
    pub rows: Vec<Rows>,
    /// What of the time asked for is missing because it is damaged.
    pub damages: Vec<Damage>,
}

impl Archive {
    /// All rows of a query. Where there are many, [`Archive::visit`] needs less memory.
    #[must_use]
    pub fn rows(&self, query: &Query<'_>) -> Found {
        let mut rows: Vec<Rows> = Vec::new();
        let damages = self.visit(query, |more| {
            match rows.last_mut() {
                Some(last) if last.is_continued_by(&more) => last.append(more),
                _ => rows.push(more),
            }
            ControlFlow::Continue(())
        });
        Found { rows, damages }
    }

    /// Shows `visit` the rows of a query a block at a time, in the order in which they were read, until it breaks. Gives
    /// what could not be read.
    pub fn visit(&self, query: &Query<'_>, mut visit: impl FnMut(Rows) -> ControlFlow<()>) -> Vec<Damage> {
        let mut damages = Vec::new();
        let (from, to) = range(query.from, query.to);
        let blocks = self.blocks.iter().filter(|block| {
            let (first, last) = block.meta.wall;
            first <= to && last >= from
        });
        for block in blocks {
            let Some(wanted) = self.wanted(block.meta.track, query) else {
                continue;
            };
            match self.read(block, &wanted) {
                Ok(mut rows) => {
                    rows.keep(from, to);
                    if !rows.times.is_empty() && visit(rows).is_break() {
                        return damages;
                    }
                }
                Err(damage) => damages.push(damage),
            }
        }
        for log in &self.logs {
            for rows in self.log_rows(log, query, &mut damages) {
                if visit(rows).is_break() {
                    return damages;
                }
            }
        }
        damages
    }

    /// The columns that a query wants of a track; `None` if it wants none.
    fn wanted(&self, track: TrackId, query: &Query<'_>) -> Option<Wanted> {
        let track = self.tracks.get(&track)?;
        if track.port != *query.port || track.source != query.source {
            return None;
        }
        let columns: Vec<usize> = if query.columns.is_empty() {
            (0..track.columns.len()).collect()
        } else {
            query
                .columns
                .iter()
                .filter_map(|name| track.column(name))
                .collect()
        };
        (!columns.is_empty()).then(|| Wanted {
            track: Arc::clone(track),
            columns,
        })
    }

    fn read(&self, block: &Block, wanted: &Wanted) -> Result<Rows, Damage> {
        let file = &self.files[block.file];
        let because = |Malformed(why)| damage(&file.name, &block.entry, why);
        if block.meta.columns as usize != wanted.track.columns.len() {
            return Err(because(Malformed("a block has not the columns of its track")));
        }
        let body = contents::body(&file.name, &*file.source, &block.entry)?;
        let decoded = block::decode(&block.meta, &body, &wanted.columns).map_err(because)?;
        let mut rows = wanted.rows(block.meta.epoch);
        let times = decoded.spans.into_iter().zip(decoded.offsets);
        rows.times = times.map(|(span, offset)| RowTime::new(span, offset)).collect();
        for (values, [value, low, high]) in rows.columns.iter_mut().zip(decoded.columns) {
            values.extremes = if low.is_empty() {
                vec![None; value.len()]
            } else {
                low.into_iter()
                    .zip(high)
                    .map(|(low, high)| extremes(low, high))
                    .collect()
            };
            values.values = value;
        }
        Ok(rows)
    }

    /// The rows of a log, which is in memory and was checked.
    fn log_rows(&self, log: &Logged, query: &Query<'_>, damages: &mut Vec<Damage>) -> Vec<Rows> {
        let (from, to) = range(query.from, query.to);
        let in_range = |meta: &row::Meta| {
            let (first, last) = meta.wall();
            first <= to && last >= from
        };
        let mut wanted = HashMap::new();
        let mut found: Vec<Rows> = Vec::new();
        let mut cells = Unpacked::default();
        for row in log.rows(in_range) {
            let taken = row.and_then(|row| {
                let wanted = wanted
                    .entry(row.track)
                    .or_insert_with(|| self.wanted(row.track, query));
                let Some(wanted) = wanted else { return Ok(()) };
                row::decode(row.bytes, &mut cells)
                    .and_then(|()| wanted.take(&cells, *row.meta(), &mut found))
                    .map_err(|why| log.damage(row.at(), row.bytes.len(), why))
            });
            damages.extend(taken.err());
        }
        for rows in &mut found {
            rows.keep(from, to);
        }
        found.retain(|rows| !rows.times.is_empty());
        found
    }
}

fn extremes(low: u64, high: u64) -> Option<Extremes> {
    Some(Extremes {
        low: Code::from_stored(low)?.value(),
        high: Code::from_stored(high)?.value(),
    })
}

/// The columns that a query wants of a track.
struct Wanted {
    track: Arc<Track>,
    columns: Vec<usize>,
}

impl Wanted {
    fn rows(&self, epoch: Epoch) -> Rows {
        let values = |column: &usize| Values {
            column: *column,
            values: Vec::new(),
            extremes: Vec::new(),
        };
        Rows {
            track: Arc::clone(&self.track),
            epoch,
            times: Vec::new(),
            columns: self.columns.iter().map(values).collect(),
        }
    }

    /// Adds a row of a log to what was found so far.
    fn take(&self, row: &Unpacked, meta: row::Meta, found: &mut Vec<Rows>) -> Result<(), Malformed> {
        let width = self.track.columns.len();
        if row.columns != width {
            return Err(Malformed("a row has not the columns of its track"));
        }
        let continued = |rows: &Rows| Arc::ptr_eq(&rows.track, &self.track) && rows.epoch == meta.epoch;
        if !found.last().is_some_and(continued) {
            found.push(self.rows(meta.epoch));
        }
        let Some(rows) = found.last_mut() else {
            return Ok(());
        };
        rows.times.push(RowTime::new(row.span(), meta.offset));
        for values in &mut rows.columns {
            let cell = |part: usize| row.cells.get(part * width + values.column).copied();
            values.values.push(cell(0).unwrap_or(model::ABSENT));
            let stored = |part| cell(part).unwrap_or(0);
            values.extremes.push(extremes(stored(1), stored(2)));
        }
        Ok(())
    }
}

impl RowTime {
    fn new(span: Span, offset: Offset) -> Self {
        Self {
            window: span.window(),
            wall: nanos(offset.wall(span.midpoint())),
        }
    }
}

impl Rows {
    fn is_continued_by(&self, more: &Self) -> bool {
        Arc::ptr_eq(&self.track, &more.track) && self.epoch == more.epoch
    }

    fn append(&mut self, more: Self) {
        self.times.extend(more.times);
        for (values, more) in self.columns.iter_mut().zip(more.columns) {
            values.values.extend(more.values);
            values.extremes.extend(more.extremes);
        }
    }

    /// Drops the rows outside of `from..=to`, in microseconds.
    fn keep(&mut self, from: i64, to: i64) {
        let inside: Vec<bool> = self
            .times
            .iter()
            .map(|time| (from..=to).contains(&crate::time::micros(time.wall)))
            .collect();
        if inside.iter().all(|inside| *inside) {
            return;
        }
        retain(&mut self.times, &inside);
        for values in &mut self.columns {
            retain(&mut values.values, &inside);
            retain(&mut values.extremes, &inside);
        }
    }
}

fn retain<T>(all: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    all.retain(|_| keep.next().copied().unwrap_or(false));
}
