//! A clock that is set by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock that stands still until it is advanced, for a day of rows without waiting for it. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct StepClock(Arc<AtomicU64>);

impl StepClock {
    /// Nanoseconds that it has been advanced by.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}
