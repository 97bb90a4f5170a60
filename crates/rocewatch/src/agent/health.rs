//! What a source costs and how it keeps its cadence: written by its lane, read by everybody, without a lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Upper bounds of the read-time histogram in nanoseconds: from a read out of memory to a firmware that hangs.
pub(crate) const READ_TIME_BOUNDS: [u64; 5] = [100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// The live figures of one source of one port.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Rows read.
    pub(crate) samples: AtomicU64,
    /// Reads that the cadence had room for but that did not take place, because an earlier read took too long.
    pub(crate) late: AtomicU64,
    /// Reads that gave no row.
    pub(crate) failed: AtomicU64,
    /// Granted interval in nanoseconds; 0 before the first grant.
    pub(crate) interval: AtomicU64,
    /// When the read (or opening) under way began; 0 while there is none.
    pub(crate) busy_since: AtomicU64,
    /// Reads by duration; the last cell counts those above every bound.
    pub(crate) read_times: [AtomicU64; READ_TIME_BOUNDS.len() + 1],
    /// Sum of all durations in nanoseconds.
    pub(crate) read_time_sum: AtomicU64,
    reread: AtomicBool,
    reopen: AtomicBool,
}

impl Health {
    /// A read or an opening begins.
    pub(super) fn begin(&self, now: u64) {
        self.busy_since.store(now.max(1), Relaxed);
    }

    /// It has ended; gives what it took.
    pub(super) fn end(&self, now: u64) -> u64 {
        now.saturating_sub(self.busy_since.swap(0, Relaxed))
    }

    /// Counts a read's duration.
    pub(super) fn count_read_time(&self, took: u64) {
        let bucket = READ_TIME_BOUNDS
            .iter()
            .position(|bound| took <= *bound)
            .unwrap_or(READ_TIME_BOUNDS.len());
        self.read_times[bucket].fetch_add(1, Relaxed);
        self.read_time_sum.fetch_add(took, Relaxed);
    }

    /// For how long the read under way has been under way.
    pub(crate) fn busy_for(&self, now: u64) -> u64 {
        match self.busy_since.load(Relaxed) {
            0 => 0,
            since => now.saturating_sub(since),
        }
    }

    /// Asks the lane to read at once; true if it was not already asked.
    pub(super) fn ask_reread(&self) -> bool {
        !self.reread.swap(true, Relaxed)
    }

    /// Asks the lane to try to open a closed source at once; true if it was not already asked.
    pub(super) fn ask_reopen(&self) -> bool {
        !self.reopen.swap(true, Relaxed)
    }

    pub(super) fn take_reread(&self) -> bool {
        self.reread.swap(false, Relaxed)
    }

    pub(super) fn take_reopen(&self) -> bool {
        self.reopen.swap(false, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_counted_in_the_bucket_of_its_duration() {
        let health = Health::default();
        health.count_read_time(100_000);
        health.count_read_time(100_001);
        health.count_read_time(u64::from(u32::MAX) * 10);
        let counts: Vec<_> = health.read_times.iter().map(|c| c.load(Relaxed)).collect();
        assert_eq!(counts, [1, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn busy_only_between_begin_and_end() {
        let health = Health::default();
        assert_eq!(health.busy_for(50), 0);
        health.begin(100);
        assert_eq!(health.busy_for(150), 50);
        assert_eq!(health.end(160), 60);
        assert_eq!(health.busy_for(200), 0);
    }
}
