//! The two clocks, and how times are kept.

/// Names one zero of the monotonic clock. Times of one epoch can be compared; those of two cannot.
///
/// Where monotonic times count from the boot, it is the kernel's boot id (`/proc/sys/kernel/random/boot_id`); where they
/// count from the start of the process, it is anything that no other start has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub [u8; 16]);

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds of the monotonic clock that rows are timed with.
    pub monotonic: u64,
    /// Nanoseconds since 1970, UTC.
    pub wall: i64,
}

/// The wall clock is kept as its distance from the monotonic one, which is noted anew when it is off by this much. So
/// wall times are right to a millisecond, and an undisturbed clock costs nothing.
const TOLERATED: i64 = 1_000;

/// Microseconds from the monotonic clock's zero to that of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset(pub(crate) i64);

impl Offset {
    pub(crate) fn of(now: Now) -> Self {
        let monotonic = i64::try_from(now.monotonic).unwrap_or(i64::MAX);
        Self(now.wall.saturating_sub(monotonic).div_euclid(1_000))
    }

    /// Follows the wall clock, if it has moved.
    pub(crate) fn follow(&mut self, now: Now) {
        let seen = Self::of(now);
        if seen.0.abs_diff(self.0) >= TOLERATED.unsigned_abs() {
            *self = seen;
        }
    }

    /// The wall time of a monotonic one, both in microseconds.
    pub(crate) fn wall(self, monotonic: u64) -> i64 {
        self.0
            .saturating_add(i64::try_from(monotonic).unwrap_or(i64::MAX))
    }
}

/// When a row was read, rounded outwards to microseconds: the true window lies within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) began: u64,
    pub(crate) length: u64,
}

impl Span {
    pub(crate) fn around(window: ring::Window) -> Self {
        let began = window.began / 1_000;
        let ended = window.ended.max(window.began).div_ceil(1_000);
        Self {
            began,
            length: ended - began,
        }
    }

    pub(crate) fn window(self) -> ring::Window {
        let ended = self.began.saturating_add(self.length);
        ring::Window {
            began: self.began.saturating_mul(1_000),
            ended: ended.saturating_mul(1_000),
        }
    }

    /// The best guess of when the values were taken.
    pub(crate) fn midpoint(self) -> u64 {
        self.began.saturating_add(self.length / 2)
    }
}

/// Nanoseconds as the archive's microseconds.
pub(crate) fn micros(nanos: i64) -> i64 {
    nanos.div_euclid(1_000)
}

/// The archive's microseconds as nanoseconds.
pub(crate) fn nanos(micros: i64) -> i64 {
    micros.saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ring::Window;

    const SECOND: i64 = 1_000_000_000;

    fn at(monotonic: i64, wall: i64) -> Now {
        Now {
            monotonic: monotonic.unsigned_abs(),
            wall,
        }
    }

    #[test]
    fn a_wall_clock_that_drifts_is_followed_by_the_millisecond() {
        let mut offset = Offset::of(at(SECOND, 100 * SECOND));
        offset.follow(at(2 * SECOND, 101 * SECOND + 999_000));
        assert_eq!(offset.wall(2_000_000), 101_000_000);
        offset.follow(at(3 * SECOND, 102 * SECOND + 1_000_000));
        assert_eq!(offset.wall(3_000_000), 102_001_000);
    }

    #[test]
    fn a_wall_clock_that_is_set_back_is_followed() {
        let mut offset = Offset::of(at(SECOND, 7200 * SECOND));
        offset.follow(at(2 * SECOND, 3601 * SECOND));
        assert_eq!(offset.wall(2_000_000), 3601 * 1_000_000);
    }

    proptest! {
        #[test]
        fn the_true_window_lies_within_the_kept_one(began: u64, length in 0_u64..1 << 40) {
            let began = began >> 1;
            let window = Window { began, ended: began + length };
            let kept = Span::around(window).window();
            prop_assert!(kept.began <= window.began && window.ended <= kept.ended);
            prop_assert!(kept.length() < length + 2_000);
        }
    }
}
