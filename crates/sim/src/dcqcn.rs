//! ECN and its control loop, DCQCN: what the switch marks, who is told, and how senders react.
//!
//! Flows of one origin are taken together (a mean field): where the paper's rules say that a flow does or does not
//! get a CNP, here a share of the flows does.

use crate::fabric::{CAPACITY, DATA_FRAME};

/// A sender has this many queue pairs in use towards one peer.
pub(crate) const FLOWS: f64 = 4.0;
/// Queue length at which marking begins, bytes.
const K_MIN: f64 = 0.8e6;
/// Queue length from which everything is marked, bytes.
pub(crate) const K_MAX: f64 = 3.2e6;
/// Marking probability just below [`K_MAX`].
const P_MAX: f64 = 0.2;
/// The notification point sends at most one CNP a flow in this time, seconds (DCQCN).
pub(crate) const CNP_INTERVAL: f64 = 50e-6;
/// Gain of the congestion estimate (DCQCN).
const GAIN: f64 = 1.0 / 256.0;
/// Quiet intervals of fast recovery before the target rate itself grows (DCQCN).
const FAST_RECOVERY: f64 = 5.0;
/// Additive increase a flow and interval: 40 Mb/s on the paper's 40G, in proportion at 400G; bytes per second.
const ADDITIVE_INCREASE: f64 = 400e6 / 8.0;
/// Rate limiters go no lower than this share of the line.
const MIN_SHARE: f64 = 0.001;
/// Share of the line that each flow of a sender has when nothing limits it.
const FLOW_RATE: f64 = CAPACITY / FLOWS;

/// What is left of the control loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Control {
    /// All of it.
    #[default]
    Whole,
    /// The switches mark nothing.
    Unmarked,
    /// This node's senders get their CNPs and go on as before.
    Ignored,
}

/// Like flows of one origin.
#[derive(Clone, Debug)]
pub(crate) struct Senders {
    pub(crate) flows: f64,
    /// Current rate of a flow, bytes per second.
    rate: f64,
    /// Target rate of a flow.
    target: f64,
    /// DCQCN's estimate of congestion, 0..=1.
    alpha: f64,
    /// Control intervals since the last CNP, averaged over the flows.
    quiet: f64,
}

impl Senders {
    pub(crate) fn new(flows: f64) -> Self {
        Self {
            flows,
            rate: FLOW_RATE,
            target: FLOW_RATE,
            alpha: 1.0,
            quiet: 0.0,
        }
    }

    pub(crate) fn limit(&self) -> f64 {
        self.flows * self.rate
    }

    pub(crate) fn unlimited(&self) -> bool {
        self.rate >= FLOW_RATE
    }

    /// One control interval in which the share `notified` of the flows gets a CNP.
    pub(crate) fn react(&mut self, notified: f64) {
        if notified <= 0.0 && self.unlimited() {
            return;
        }
        let calm = 1.0 - notified;
        self.target += notified * (self.rate - self.target);
        self.rate *= 1.0 - notified * self.alpha / 2.0;
        self.alpha = (1.0 - GAIN) * self.alpha + GAIN * notified;
        self.quiet = (self.quiet + 1.0) * calm;
        if self.quiet > FAST_RECOVERY {
            self.target = (self.target + calm * ADDITIVE_INCREASE).min(FLOW_RATE * 1.01);
        }
        self.rate = (self.rate + calm * (self.target - self.rate) / 2.0).max(FLOW_RATE * MIN_SHARE);
        if self.unlimited() {
            // The limiter lets go of the flow, and its next CNP finds it as new: alpha starts at 1.
            *self = Self::new(self.flows);
        }
    }

    /// Share of these flows that get a CNP in an interval, when `delivered` bytes of their packets arrive in `span` seconds.
    pub(crate) fn notified(&self, marking: f64, delivered: f64, span: f64) -> f64 {
        notified(
            marking,
            delivered / DATA_FRAME / self.flows / (span / CNP_INTERVAL),
        )
    }

    /// CNPs when this share of the flows gets one in every interval of `span` seconds.
    pub(crate) fn cnps(&self, notified: f64, span: f64) -> f64 {
        self.flows * notified * span / CNP_INTERVAL
    }
}

/// Share of the packets that the switch marks at this queue length: RED as DCQCN configures it.
pub(crate) fn marking(queue: f64) -> f64 {
    if queue <= K_MIN {
        0.0
    } else if queue <= K_MAX {
        P_MAX * (queue - K_MIN) / (K_MAX - K_MIN)
    } else {
        1.0
    }
}

/// Share of the flows that had at least one marked packet among the `packets` that each had in an interval. Never
/// more than the marked packets themselves, also where a flow has less than one packet in an interval.
fn notified(marking: f64, packets: f64) -> f64 {
    if marking <= 0.0 {
        return 0.0;
    }
    (1.0 - (1.0 - marking).powf(packets)).min(marking * packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marking_is_red() {
        assert!(marking(K_MIN).abs() < 1e-12);
        assert!((marking(f64::midpoint(K_MIN, K_MAX)) - P_MAX / 2.0).abs() < 1e-12);
        assert!((marking(K_MAX) - P_MAX).abs() < 1e-12);
        assert!((marking(K_MAX + 1.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_first_cnp_halves_the_rate_and_quiet_brings_it_back() {
        let mut senders = Senders::new(FLOWS);
        senders.react(1.0);
        assert!((senders.rate / FLOW_RATE - 0.5).abs() < 1e-9);
        let intervals = (1..10_000).find(|_| {
            senders.react(0.0);
            senders.unlimited()
        });
        assert!(intervals.is_some_and(|n| n > 5), "{intervals:?}");
        assert!((senders.alpha - 1.0).abs() < 1e-12);
    }
}
