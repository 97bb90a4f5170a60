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
    read_times: [AtomicU64; READ_TIME_BOUNDS.len() + 1],
    read_time_sum: AtomicU64,
    reread: AtomicBool,
    reopen: AtomicBool,
}

/// A source's figures at one moment: the lane goes on counting, but what is told together has to agree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Rows read.
    pub(crate) samples: u64,
    /// As [`Health::late`].
    pub(crate) late: u64,
    /// As [`Health::failed`].
    pub(crate) failed: u64,
    /// As [`Health::interval`].
    pub(crate) interval: u64,
    /// Reads by duration.
    pub(crate) read_times: ReadTimes,
    /// Rows that the ring holds; `None` while nothing is read.
    pub(crate) ring_rows: Option<u64>,
}

/// Reads by duration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadTimes {
    counts: [u64; READ_TIME_BOUNDS.len() + 1],
    /// Sum of all durations in nanoseconds.
    pub(crate) sum: u64,
}

impl ReadTimes {
    /// Reads that took no longer than the bound of this position; all of them at the position behind the last.
    pub(crate) fn up_to(&self, at: usize) -> u64 {
        self.counts[..=at].iter().sum()
    }
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

    /// The figures now, of a source whose ring holds so many rows.
    pub(super) fn figures(&self, ring_rows: u64) -> Figures {
        Figures {
            samples: self.samples.load(Relaxed),
            late: self.late.load(Relaxed),
            failed: self.failed.load(Relaxed),
            interval: self.interval.load(Relaxed),
            read_times: self.read_times(),
            ring_rows: Some(ring_rows),
        }
    }

    fn read_times(&self) -> ReadTimes {
        ReadTimes {
            counts: self.read_times.each_ref().map(|count| count.load(Relaxed)),
            sum: self.read_time_sum.load(Relaxed),
        }
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
        let times = health.read_times();
        assert_eq!(times.counts, [1, 1, 0, 0, 0, 1]);
        assert_eq!([0, 1, 4, 5].map(|at| times.up_to(at)), [1, 2, 2, 3]);
    }

    #[test]
    fn a_look_at_the_durations_stands_still_while_the_lane_counts_on() {
        let health = Health::default();
        health.count_read_time(7);
        let times = health.read_times();
        health.count_read_time(8);
        assert_eq!((times.up_to(READ_TIME_BOUNDS.len()), times.sum), (1, 7));
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
