//! When something has begun, and when it is over.

/// When an event opens and when it closes. What lies between the two values changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// It opens once the value has been at this or above …
    pub open_at: f64,
    /// … for so long without a break, in nanoseconds.
    pub open_after: u64,
    /// It closes once the value has been below this …
    pub close_below: f64,
    /// … for so long without a break, in nanoseconds.
    pub close_after: u64,
}

/// A value, and the time that it is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) began: u64,
    pub(super) ended: u64,
    /// `None` while nobody can tell.
    pub(super) value: Option<f64>,
}

impl Sample {
    /// A value of this instant.
    pub(super) fn at(now: u64, value: Option<f64>) -> Self {
        Self {
            began: now,
            ended: now,
            value,
        }
    }
}

/// What has changed with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Opened { began: u64 },
    Closed { began: u64, ended: u64 },
}

/// Where one event stands. Taking the same sample twice changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latch {
    state: State,
    /// The highest value since it began.
    peak: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Quiet,
    /// Above since then, not yet for long enough.
    Rising(u64),
    Open {
        began: u64,
    },
    /// Below since `since`, not yet for long enough.
    Falling {
        began: u64,
        since: u64,
    },
}

impl Latch {
    pub(super) const QUIET: Self = Self {
        state: State::Quiet,
        peak: 0.0,
    };

    pub(super) fn is_quiet(&self) -> bool {
        self.state == State::Quiet
    }

    /// When the event began, if it is open.
    pub(super) fn began(&self) -> Option<u64> {
        match self.state {
            State::Open { began } | State::Falling { began, .. } => Some(began),
            State::Quiet | State::Rising(_) => None,
        }
    }

    pub(super) fn peak(&self) -> f64 {
        self.peak
    }

    /// Takes in a sample. One without a value opens nothing, and recovers nothing: what cannot be seen is not over.
    pub(super) fn feed(&mut self, rule: &Rule, sample: Sample) -> Option<Edge> {
        let Some(value) = sample.value else {
            self.state = match self.began() {
                Some(began) => State::Open { began },
                None => State::Quiet,
            };
            return None;
        };
        match self.began() {
            Some(began) => self.feed_open(rule, sample, value, began),
            None => self.feed_closed(rule, sample, value),
        }
    }

    fn feed_closed(&mut self, rule: &Rule, sample: Sample, value: f64) -> Option<Edge> {
        if value < rule.open_at {
            self.state = State::Quiet;
            return None;
        }
        let since = if let State::Rising(since) = self.state {
            self.peak = self.peak.max(value);
            since
        } else {
            self.peak = value;
            sample.began
        };
        if sample.ended.saturating_sub(since) < rule.open_after {
            self.state = State::Rising(since);
            return None;
        }
        self.state = State::Open { began: since };
        Some(Edge::Opened { began: since })
    }

    fn feed_open(&mut self, rule: &Rule, sample: Sample, value: f64, began: u64) -> Option<Edge> {
        self.peak = self.peak.max(value);
        if value >= rule.close_below {
            self.state = State::Open { began };
            return None;
        }
        let since = if let State::Falling { since, .. } = self.state {
            since
        } else {
            sample.began
        };
        if sample.ended.saturating_sub(since) < rule.close_after {
            self.state = State::Falling { began, since };
            return None;
        }
        self.state = State::Quiet;
        Some(Edge::Closed { began, ended: since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: Rule = Rule {
        open_at: 0.9,
        open_after: 400,
        close_below: 0.5,
        close_after: 1000,
    };

    /// Feeds one value for each 200 ns; gives what changed, and at the end of which step.
    fn play(values: &[Option<f64>]) -> Vec<(u64, Edge)> {
        let mut latch = Latch::QUIET;
        let steps = (0..).step_by(200).zip(values);
        let fed = steps.filter_map(|(began, value)| {
            let sample = Sample {
                began,
                ended: began + 200,
                value: *value,
            };
            let edge = latch.feed(&RULE, sample);
            assert_eq!(latch.feed(&RULE, sample), None, "the same sample again");
            Some((began + 200, edge?))
        });
        fed.collect()
    }

    fn known(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn it_opens_after_its_time_and_began_when_it_was_first_above() {
        let edges = play(&known(&[0.0, 0.6, 0.9, 1.0, 1.0]));
        assert_eq!(edges, [(800, Edge::Opened { began: 400 })]);
    }

    #[test]
    fn a_moment_below_begins_the_count_anew() {
        assert_eq!(play(&known(&[1.0, 0.8, 1.0, 0.8, 1.0])), []);
    }

    #[test]
    fn it_closes_after_its_time_and_ended_when_it_was_first_below() {
        let edges = play(&known(&[1.0, 1.0, 0.4, 0.6, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0]));
        let opened = (400, Edge::Opened { began: 0 });
        let closed = Edge::Closed { began: 0, ended: 800 };
        assert_eq!(edges, [opened, (1800, closed)]);
    }

    #[test]
    fn what_is_unknown_opens_nothing_and_recovers_nothing() {
        assert_eq!(play(&[Some(1.0), None, Some(1.0), None]), []);
        let mut values = known(&[1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        values.extend([None; 50]);
        values.extend(known(&[0.0; 4]));
        assert_eq!(play(&values), [(400, Edge::Opened { began: 0 })]);
        values.push(Some(0.0));
        assert_eq!(play(&values).len(), 2);
    }

    proptest! {
        #[test]
        fn it_opens_and_closes_in_turn_each_after_its_time(
            values in prop::collection::vec(prop::option::weighted(0.9, 0.0..1.2f64), 0..400),
        ) {
            let mut open = false;
            let mut last_end = 0;
            for (at, edge) in play(&values) {
                match edge {
                    Edge::Opened { began } => {
                        prop_assert!(!open && began >= last_end && at - began >= RULE.open_after);
                    }
                    Edge::Closed { began, ended } => {
                        prop_assert!(open && began < ended && at - ended >= RULE.close_after);
                        last_end = ended;
                    }
                }
                open = !open;
            }
        }
    }
}
