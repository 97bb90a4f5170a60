//! What the columns of a row are.

use crate::{PortId, QpColumn, SourceKind};
use catalog::{Index, Kind, Meaning, Signal};
use std::sync::Arc;

/// The cell of a counter that could not be read while others of the row could. No counter reaches it: hardware counts
/// in at most 64 bits and at one per nanosecond would take 584 years; ionic answers it for counters it lacks.
pub const ABSENT: u64 = u64::MAX;

/// The columns of a track. It never changes: a change of the counters opens a new track.
#[derive(Debug)]
pub struct Schema {
    /// Whose counters.
    pub port: PortId,
    /// Where they are read.
    pub source: SourceKind,
    /// One per cell of a row.
    pub columns: Box<[Column]>,
}

/// One column of a track.
#[derive(Clone, Debug)]
pub struct Column {
    /// The counter's name, exactly as the driver has it.
    pub name: Arc<str>,
    /// What it means, if the catalogue knows.
    pub meaning: Option<Meaning>,
    /// It only grows, but for beginning anew; otherwise it is a reading. What the catalogue does not know is taken for a
    /// counter, as nearly all of them are.
    pub counts: bool,
}

impl Schema {
    /// A schema of the counters `names` of a device bound to `driver`, in that order.
    pub fn new<N: Into<Arc<str>>>(
        port: PortId,
        driver: &str,
        source: SourceKind,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        let columns = names
            .into_iter()
            .map(|name| {
                let name = name.into();
                let meaning = catalog::meaning(driver, source, &name);
                let counts = match source {
                    SourceKind::QpCounters => !QpColumn::parse(&name).is_reading(),
                    _ => meaning.is_none_or(|meaning| meaning.entry.kind == Kind::Counter),
                };
                Column {
                    name,
                    meaning,
                    counts,
                }
            })
            .collect();
        Self {
            port,
            source,
            columns,
        }
    }

    /// The columns that carry `signal` at `index`.
    pub fn find(&self, signal: Signal, index: Option<Index>) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().enumerate().filter_map(move |(i, column)| {
            let meaning = column.meaning?;
            (meaning.signal() == signal && meaning.index == index).then_some(i)
        })
    }
}
