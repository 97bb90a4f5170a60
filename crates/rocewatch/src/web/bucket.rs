//! A token bucket: one request each interval, and a burst of them at once.

use super::file::RateLimit;
use crate::clock::nanos;

/// How many requests may still come. It counts in time: a request costs an interval, and time gives it back.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Nanoseconds that a request costs.
    cost: u64,
    /// No more than this is saved up.
    most: u64,
    saved: u64,
    /// Until when time was given.
    at: u64,
}

impl Bucket {
    /// A full one at the time `now`.
    pub(super) fn new(limit: RateLimit, now: u64) -> Self {
        let cost = nanos(limit.interval);
        let most = cost.saturating_mul(u64::from(limit.burst));
        Self {
            cost,
            most,
            saved: most,
            at: now,
        }
    }

    /// True if a request may be answered now.
    pub(super) fn admits(&mut self, now: u64) -> bool {
        let gained = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        self.saved = self.saved.saturating_add(gained).min(self.most);
        let enough = self.saved >= self.cost;
        if enough {
            self.saved -= self.cost;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_is_admitted_and_then_one_each_interval() {
        let mut bucket = Bucket::new(
            RateLimit {
                interval: Duration::from_nanos(10),
                burst: 3,
            },
            100,
        );
        let admitted: Vec<bool> = [100, 100, 100, 100, 109, 110, 111, 119, 120]
            .into_iter()
            .map(|now| bucket.admits(now))
            .collect();
        assert_eq!(
            admitted,
            [true, true, true, false, false, true, false, false, true]
        );
        // However long nobody came, no more than the burst is saved up; and a clock that goes back gives nothing.
        let long: Vec<bool> = [9_000, 9_000, 9_000, 9_000, 8_000]
            .into_iter()
            .map(|now| bucket.admits(now))
            .collect();
        assert_eq!(long, [true, true, true, false, false]);
    }
}
