//! The rate of one quantity over the last window, and from one sample to the next.

use ring::Window;
use std::collections::VecDeque;

/// Follows a quantity that only grows.
pub(crate) struct Meter {
    /// Span of the rate in nanoseconds.
    window: u64,
    /// How often the driver refreshes the quantity; 0 if at every read.
    refresh: u64,
    /// The last read showed the same amount as the one before, or there was none before: the amount may be old.
    still: bool,
    /// Time and amount, the newest last; the oldest is the newest one that is at least a window old.
    points: VecDeque<(u64, u64)>,
}

/// A growth over a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Growth {
    pub(crate) amount: u64,
    pub(crate) nanoseconds: u64,
}

impl Growth {
    pub(crate) fn per_second(self) -> f64 {
        self.amount as f64 * 1e9 / self.nanoseconds as f64
    }
}

impl Meter {
    /// A meter whose rate spans `window`, or three refreshes of a driver that refreshes more slowly than that.
    pub(crate) fn new(window: u64, refresh: u64) -> Self {
        Self {
            window: window.max(3 * refresh),
            refresh,
            still: true,
            points: VecDeque::new(),
        }
    }

    /// Forgets all: what comes next has nothing to do with what came before.
    pub(crate) fn clear(&mut self) {
        self.points.clear();
    }

    /// Takes in an amount at the time of its read; gives the step from the sample before.
    ///
    /// Two kinds of reads are no samples, so that the step from the sample before to the one behind is wider instead:
    /// one that took more than a tenth of the step, since nobody knows when within it the amount was taken; and, of a
    /// driver that refreshes more slowly than it is read, one that shows no refresh, since its amount is old and would
    /// show nothing and then several times too much.
    pub(crate) fn push(&mut self, window: Window, amount: u64) -> Option<Growth> {
        let now = window.midpoint();
        if self.still {
            self.date_back(now, amount);
        }
        self.still = self.points.back().is_none_or(|(_, last)| *last == amount);
        let Some(&(before, last)) = self.points.back() else {
            if window.length() <= self.window / 10 {
                self.points.push_back((now, amount));
            }
            return None;
        };
        let elapsed = now.saturating_sub(before);
        let old = self.refresh > 0 && amount == last && elapsed < 2 * self.refresh;
        let blurred = window.length() > elapsed / 10;
        if elapsed == 0 || old || blurred {
            return None;
        }
        while self.points.len() > 1 && now.saturating_sub(self.points[1].0) >= self.window {
            self.points.pop_front();
        }
        self.points.push_back((now, amount));
        Some(Growth {
            amount: amount.wrapping_sub(last),
            nanoseconds: elapsed,
        })
    }

    /// Of a driver that refreshes more slowly than it is read, a growth after standing still took a whole refresh at least:
    /// the amount before it was that of the refresh before, even if it was read only later, as the first one or while
    /// nothing moved. One that grows from read to read refreshes faster than it is known to.
    fn date_back(&mut self, now: u64, amount: u64) {
        let at_former = now.saturating_sub(self.refresh);
        let earliest = self
            .points
            .len()
            .checked_sub(2)
            .map_or(0, |at| self.points[at].0 + 1);
        if let Some((before, last)) = self.points.back_mut()
            && amount != *last
        {
            *before = at_former.max(earliest).min(*before);
        }
    }

    /// The newest step: when it began, and the growth from then on.
    pub(crate) fn step(&self) -> Option<(u64, Growth)> {
        let (ended, last) = *self.points.back()?;
        let (began, first) = *self.points.get(self.points.len().checked_sub(2)?)?;
        Some((
            began,
            Growth {
                amount: last.wrapping_sub(first),
                nanoseconds: ended - began,
            },
        ))
    }

    /// The growth over the last window, or over as much of it as there is.
    pub(crate) fn growth(&self) -> Option<Growth> {
        let (first, last) = (self.points.front()?, self.points.back()?);
        let nanoseconds = last.0.saturating_sub(first.0);
        (nanoseconds > 0).then(|| Growth {
            amount: last.1.wrapping_sub(first.1),
            nanoseconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Window {
        took(ms, 0)
    }

    fn took(ms: u64, length_ms: u64) -> Window {
        Window {
            began: ms * MS,
            ended: (ms + length_ms) * MS,
        }
    }

    fn rate(meter: &Meter) -> f64 {
        meter.growth().expect("two points").per_second()
    }

    #[test]
    fn a_rate_is_taken_by_the_real_time_between_reads() {
        let mut meter = Meter::new(1000 * MS, 0);
        assert_eq!(meter.push(at(0), 0), None);
        // Three reads at uneven times of something that grows by 5 a millisecond.
        for ms in [130, 310, 1400] {
            let step = meter.push(at(ms), ms * 5).expect("a step");
            assert!((step.per_second() - 5000.0).abs() < 1e-6);
        }
        assert!((rate(&meter) - 5000.0).abs() < 1e-6);
    }

    #[test]
    fn the_window_slides() {
        let mut meter = Meter::new(1000 * MS, 0);
        // Fast until 5 s, then still.
        for tenth in 0..100u64 {
            meter.push(at(tenth * 100), tenth.min(50) * 1000);
        }
        assert!(rate(&meter).abs() < 1e-9);
        assert!(meter.points.len() <= 12, "{}", meter.points.len());
    }

    #[test]
    fn a_driver_that_refreshes_once_a_second_shows_no_staircase() {
        let mut meter = Meter::new(1000 * MS, 1000 * MS);
        let mut steps = Vec::new();
        for read in 0..60u64 {
            // Read every 200 ms, refreshed every second, 1000 a second.
            steps.extend(meter.push(at(read * 200), read * 200 / 1000 * 1000));
        }
        assert_eq!(steps.len(), 11);
        assert!(
            steps.iter().all(|step| (step.per_second() - 1000.0).abs() < 1e-6),
            "{steps:?}"
        );
        assert!((rate(&meter) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn a_growth_after_a_rest_took_a_whole_refresh() {
        // Read every 200 ms from 100 ms on, refreshed at each second; still until 10 s, then 1000 a second.
        let mut meter = Meter::new(1000 * MS, 1000 * MS);
        let mut steps = Vec::new();
        for ms in (100..14_100).step_by(200) {
            steps.extend(meter.push(at(ms), (ms / 1000).saturating_sub(10) * 1000));
        }
        let growing: Vec<f64> = steps
            .iter()
            .map(|step| step.per_second())
            .filter(|rate| *rate > 0.0)
            .collect();
        assert_eq!(growing.len(), 3);
        assert!(
            growing.iter().all(|rate| (rate - 1000.0).abs() < 1e-6),
            "{growing:?}"
        );
    }

    #[test]
    fn a_driver_that_refreshes_faster_than_it_is_known_to_is_believed() {
        let mut meter = Meter::new(1000 * MS, 1000 * MS);
        for ms in (0..6000).step_by(200) {
            meter.push(at(ms), ms * 5);
        }
        assert!((rate(&meter) - 5000.0).abs() < 1e-6, "{}", rate(&meter));
    }

    #[test]
    fn a_read_that_took_a_large_part_of_the_step_widens_it() {
        let mut meter = Meter::new(1000 * MS, 0);
        meter.push(at(0), 0);
        // It began at 200 ms and was answered at 300 ms: nobody knows when the amount was taken.
        assert_eq!(meter.push(took(200, 100), 1000), None);
        let step = meter.push(took(400, 10), 2025).expect("a step");
        assert!((step.per_second() - 5000.0).abs() < 1e-6, "{step:?}");
    }
}
