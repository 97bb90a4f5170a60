//! The one place where time is taken.

use std::time::{Duration, Instant, SystemTime};

/// Monotonic time in nanoseconds since the process started, and the wall time that goes with it for display.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: Instant,
    zero_wall: SystemTime,
    speed: u32,
}

impl Clock {
    /// A clock that reads zero now.
    #[allow(clippy::disallowed_methods)] // this is the place
    pub(crate) fn start() -> Self {
        Self {
            zero: Instant::now(),
            zero_wall: SystemTime::now(),
            speed: 1,
        }
    }

    /// The same clock running `speed` times as fast, for a simulated server.
    pub(crate) fn faster(self, speed: u32) -> Self {
        Self { speed, ..self }
    }

    /// Nanoseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_nanos() * u128::from(self.speed)).unwrap_or(u64::MAX)
    }

    /// The wall time now, in nanoseconds since 1970. It leaps when somebody sets it.
    #[allow(clippy::disallowed_methods)] // this is the place
    pub(crate) fn wall(&self) -> i64 {
        let wall = if self.speed == 1 {
            SystemTime::now()
        } else {
            self.zero_wall + Duration::from_nanos(self.now())
        };
        let since = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    }

    /// How long a thread has to wait until the clock reads `due`.
    pub(crate) fn until(&self, due: u64) -> Duration {
        Duration::from_nanos(due.saturating_sub(self.now()) / u64::from(self.speed))
    }

    /// What a span of real time is on this clock: how long the kernel or a thread may take does not grow with its speed.
    pub(crate) fn real(&self, span: Duration) -> u64 {
        nanos(span).saturating_mul(self.speed.into())
    }

    /// The wall time at which the clock read zero.
    pub(crate) fn started_at(&self) -> SystemTime {
        self.zero_wall
    }
}

/// A duration as whole nanoseconds.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
