//! The totals of one track: every counter with its wraps resolved.

use crate::stillness::{PACKETS, Stillness};
use catalog::Width;
use model::delta::{self, Delta};
use model::{ABSENT, Schema};
use ring::Window;
use std::sync::Arc;

/// One source's newest row, and what its counters have counted.
pub(crate) struct Track {
    pub(crate) schema: Arc<Schema>,
    /// Shown only while it is recent.
    pub(crate) fresh: bool,
    /// How often the driver itself refreshes the values, in nanoseconds; 0 if at every read.
    pub(crate) refresh: u64,
    columns: Box<[Column]>,
    raw: Box<[u64]>,
    /// What each column is worth now: a counter's total, or what a gauge reads; [`ABSENT`] where nobody can tell. Apart
    /// from all else, since it is read far more often: by every rate, ratio and scrape.
    values: Box<[u64]>,
    stillness: Stillness,
    /// Columns that count packets, and whether they do without the firmware.
    packets: Box<[(usize, bool)]>,
}

#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // two say what it is, two what has happened to it
struct Column {
    width: Width,
    /// Only counters have steps; a gauge is what it reads.
    counts: bool,
    /// It is a part of its signal.
    summed: bool,
    /// The last value that was there, and when.
    previous: u64,
    read_at: u64,
    /// What the counter would read if it had 64 bits and never began anew; [`ABSENT`] before the first value.
    total: u64,
    /// The newest row saw it begin anew, so that no rate may span that row.
    reset: bool,
    /// The last value is that of the device before it was registered anew.
    former: bool,
}

impl Track {
    /// A track of this schema. Counters that `former` has under the same name carry their totals on.
    pub(crate) fn open(schema: Arc<Schema>, former: Option<&Self>) -> Self {
        let columns = schema
            .columns
            .iter()
            .map(|column| {
                former
                    .and_then(|former| former.column(&column.name))
                    .unwrap_or_else(|| Column::new(column))
            })
            .collect();
        let refresh = schema
            .columns
            .iter()
            .find_map(|column| column.meaning.map(|meaning| refresh_of(&meaning)));
        let absent = vec![ABSENT; schema.columns.len()];
        let stillness = Stillness::of(&schema);
        let packets = schema.columns.iter().enumerate().filter_map(|(at, column)| {
            let entry = column.meaning?.entry;
            PACKETS
                .contains(&entry.signal)
                .then_some((at, entry.without_firmware))
        });
        let packets = packets.collect();
        Self {
            schema,
            fresh: true,
            refresh: refresh.unwrap_or(0),
            columns,
            raw: absent.clone().into(),
            values: absent.into(),
            stillness,
            packets,
        }
    }

    /// The device has gone: what follows is another's, or the same one's after a fresh start.
    pub(crate) fn end(&mut self) {
        self.columns.iter_mut().for_each(|column| column.former = true);
    }

    fn column(&self, name: &str) -> Option<Column> {
        let at = self
            .schema
            .columns
            .iter()
            .position(|column| &*column.name == name)?;
        Some(Column {
            reset: false,
            ..self.columns[at]
        })
    }

    /// Takes in a row; gives how many counters began anew. `packets` are those of the port by the word of others.
    pub(crate) fn row(&mut self, window: Window, values: &[u64], packets: Option<u64>) -> u64 {
        let now = window.midpoint();
        self.stillness.row(now, &self.raw, values, packets);
        self.raw.copy_from_slice(values);
        // What lies behind all counters of a source is reset at once. Where one that cannot wrap has fallen, none that
        // fell with it has wrapped.
        let began_anew = self
            .columns
            .iter()
            .zip(values)
            .any(|(column, value)| column.has_fallen(*value));
        let mut resets = 0;
        let rows = self.raw.iter_mut().zip(&mut self.values);
        for (at, (column, (read, value))) in self.columns.iter_mut().zip(rows).enumerate() {
            if column.width.all_ones_is_missing && *read == column.width.max() {
                *read = ABSENT;
            }
            resets += u64::from(column.take(*read, now, began_anew));
            *value = if self.stillness.hides(at) {
                ABSENT
            } else {
                column.value(*read)
            };
        }
        resets
    }

    /// The newest row as it was read.
    pub(crate) fn raw(&self) -> &[u64] {
        &self.raw
    }

    /// When the value of a column was read, in nanoseconds.
    pub(crate) fn read_at(&self, column: usize) -> u64 {
        self.columns[column].read_at
    }

    /// The value of a column now: a counter's total, or what a gauge reads.
    pub(crate) fn value(&self, column: usize) -> Option<u64> {
        self.values.get(column).copied().filter(|value| *value != ABSENT)
    }

    /// The values of all columns now, [`ABSENT`] where there is none.
    pub(crate) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Counters that stand at the end of their width and count no more.
    pub(crate) fn full(&self) -> impl Iterator<Item = &str> {
        self.columns
            .iter()
            .zip(&self.raw)
            .zip(&self.schema.columns)
            .filter(|((column, read), _)| column.is_full(**read))
            .map(|(_, column)| &*column.name)
    }

    /// True if the values no longer are those of the hardware.
    pub(crate) fn is_frozen(&self) -> bool {
        self.stillness.is_frozen()
    }

    /// The packets that the port had, by the counters of this source; by those that need no firmware alone, if asked.
    pub(crate) fn packets(&self, without_firmware: bool) -> Option<u64> {
        self.packets
            .iter()
            .filter(|(_, without)| *without || !without_firmware)
            .filter_map(|(at, _)| self.value(*at))
            .reduce(u64::wrapping_add)
    }

    /// True if the newest row saw the counter begin anew.
    pub(crate) fn was_reset(&self, column: usize) -> bool {
        self.columns[column].reset
    }
}

impl Column {
    fn new(column: &model::Column) -> Self {
        let entry = column.meaning.map(|meaning| meaning.entry);
        Self {
            width: entry.map_or(Width::FULL, |entry| entry.width),
            counts: column.counts,
            summed: entry.is_some_and(|entry| entry.summed),
            previous: ABSENT,
            read_at: 0,
            total: ABSENT,
            reset: false,
            former: false,
        }
    }

    /// What it is worth, of which `read` was read. One that stands at its end has stopped counting, and nobody knows what it
    /// missed.
    fn value(&self, read: u64) -> u64 {
        if read == ABSENT || self.is_full(read) {
            ABSENT
        } else if self.counts {
            self.total
        } else {
            read
        }
    }

    fn is_full(&self, read: u64) -> bool {
        self.width.saturates && read == self.width.max()
    }

    /// True if the counter cannot wrap and yet reads less than before.
    fn has_fallen(&self, value: u64) -> bool {
        let wraps = self.width.bits < 64 && !self.width.extended;
        self.counts && !wraps && value != ABSENT && self.previous != ABSENT && value < self.previous
    }

    /// Takes in a value; true if the counter began anew.
    fn take(&mut self, value: u64, now: u64, began_anew: bool) -> bool {
        self.reset = false;
        if value == ABSENT || !self.counts {
            return false;
        }
        if self.previous == ABSENT {
            self.total = value;
        } else {
            let width = Width {
                // So is a counter that reads less on a device that came anew: it has not wrapped.
                extended: self.width.extended || began_anew || self.former,
                ..self.width
            };
            match delta::step(self.previous, value, width, now.saturating_sub(self.read_at)) {
                Delta::Grew(grew) => self.total = self.total.wrapping_add(grew),
                Delta::Saturated => self.total = value,
                Delta::Reset => {
                    self.total = if self.summed && !self.former {
                        // A sum that fell because one part of it began anew would look as if all had.
                        self.total.wrapping_add(value)
                    } else {
                        // It goes down with the counter, as Prometheus expects of one that began anew.
                        value
                    };
                    self.reset = true;
                }
            }
        }
        (self.previous, self.read_at) = (value, now);
        self.former = false;
        self.reset
    }
}

/// The refresh interval of the driver whose catalogue file has this entry.
fn refresh_of(meaning: &catalog::Meaning) -> u64 {
    catalog::DRIVERS
        .iter()
        .find(|driver| {
            driver
                .entries
                .as_ptr_range()
                .contains(&std::ptr::from_ref(meaning.entry))
        })
        .map_or(0, |driver| u64::from(driver.refresh_ms) * 1_000_000)
}
