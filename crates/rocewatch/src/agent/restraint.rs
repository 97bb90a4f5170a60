//! When a lane's holding back is worth a line in the log.

/// A lane's interval has to change by this factor, …
const FACTOR: u64 = 2;
/// … and stay so until this long after the last line: one slow read moves it for a moment.
const QUIET: u64 = 10_000_000_000;

/// What was last told of a lane's interval.
#[derive(Debug)]
pub(super) struct Restraint {
    /// The interval as it was told, 0 for none: as short as wanted.
    told: u64,
    quiet_until: u64,
}

impl Restraint {
    pub(super) fn new(now: u64) -> Self {
        Self {
            told: 0,
            quiet_until: now + QUIET,
        }
    }

    /// Takes in the shortest interval that the lane's share of time allows now, and the shortest that is wanted. True if it is
    /// to be told.
    pub(super) fn watch(&mut self, now: u64, floor: u64, wanted: u64) -> bool {
        let before = self.told.max(wanted);
        let after = floor.max(wanted);
        let changed = after >= before.saturating_mul(FACTOR) || before >= after.saturating_mul(FACTOR);
        if !changed || now < self.quiet_until {
            return false;
        }
        self.told = after;
        self.quiet_until = now + QUIET;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const WANTED: u64 = 200 * MS;

    #[test]
    fn an_interval_as_wanted_is_not_worth_a_line() {
        let mut restraint = Restraint::new(0);
        assert!(!restraint.watch(2 * QUIET, 0, WANTED));
        assert!(!restraint.watch(3 * QUIET, 399 * MS, WANTED));
    }

    #[test]
    fn slowing_and_its_end_are_told_once_each() {
        let mut restraint = Restraint::new(0);
        let told: Vec<_> = [900, 900, 1500, 500, 420, 250, 250]
            .into_iter()
            .zip(2..)
            .filter(|(floor, time)| restraint.watch(time * QUIET, floor * MS, WANTED))
            .map(|(floor, _)| floor)
            .collect();
        assert_eq!(told, [900, 420]);
    }

    #[test]
    fn a_moment_is_not_told() {
        let mut restraint = Restraint::new(0);
        assert!(!restraint.watch(QUIET - 1, 900 * MS, WANTED));
        assert!(!restraint.watch(QUIET, 0, WANTED));
    }
}
