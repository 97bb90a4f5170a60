//! What an archive may take, and how it is doing.

use crate::segments::Measures;
use std::time::Duration;

/// What an archive may take, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of rows on disk: the oldest segment goes when they are exceeded.
    pub bytes: u64,
    /// How much recorded time is kept, whatever the clock says now: hours in which nothing was recorded do not count, so an
    /// agent that was down for a week still has the minutes before.
    pub recorded: Duration,
    /// Bytes of events and other records.
    pub record_bytes: u64,
    /// Bytes of pins.
    pub pin_bytes: u64,
    /// Bytes of rows and of records that wait in memory, each, while the disk does not take them. The oldest go first.
    pub waiting_bytes: usize,
    /// A power loss costs what was written in this time.
    pub sync: Duration,
    /// Rows are in the log for so long before they are compressed.
    pub seal: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 2 << 30,
            recorded: Duration::from_secs(7 * 24 * 3_600),
            record_bytes: 16 << 20,
            pin_bytes: 512 << 20,
            waiting_bytes: 16 << 20,
            sync: Duration::from_secs(5),
            seal: Duration::from_secs(600),
        }
    }
}

/// Segments of which the limit in bytes, and that in time, are made up at least.
const SEGMENTS: u32 = 28;
/// No segment or log is smaller, however low the limit.
const SMALLEST_SEGMENT: u64 = 16 << 10;
/// No segment or log is larger, however high the limit.
const LARGEST_SEGMENT: u64 = 16 << 20;

impl Limits {
    pub(crate) fn measures(&self) -> Measures {
        let recorded = whole_micros(self.recorded);
        Measures {
            segment_bytes: (self.bytes / u64::from(SEGMENTS)).clamp(SMALLEST_SEGMENT, LARGEST_SEGMENT),
            segment_recorded: recorded / u64::from(SEGMENTS),
            bytes: self.bytes,
            recorded,
        }
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        (self.bytes / 8).clamp(SMALLEST_SEGMENT, LARGEST_SEGMENT)
    }
}

pub(crate) fn whole_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Whether rows reach the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// They do.
    #[default]
    Writing,
    /// They wait in memory, because of this. Every [`crate::Writer::tick`] tries again.
    Paused(String),
}

/// How an archive is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether rows reach the disk.
    pub state: State,
    /// Rows written since the start.
    pub rows: u64,
    /// Rows that found no room to wait in while the disk did not take them.
    pub lost_rows: u64,
    /// Records that found no room to wait in.
    pub lost_records: u64,
    /// Bytes that wait in memory.
    pub waiting_bytes: usize,
    /// Bytes of rows on disk.
    pub row_bytes: u64,
    /// Bytes of records on disk.
    pub record_bytes: u64,
    /// Bytes of pins on disk.
    pub pin_bytes: u64,
    /// How much time the sealed rows cover.
    pub recorded: Duration,
    /// Wall time of the oldest row on disk, in nanoseconds since 1970; `None` if there is none.
    pub oldest: Option<i64>,
}
