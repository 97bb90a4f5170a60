//! Scenarios by name.

use crate::name::{UnknownName, find};
use std::fmt;
use std::str::FromStr;

/// A play of the simulated server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// A training job on a well-behaved fabric.
    Healthy,
    /// 8:1 incasts onto one rail.
    Incast,
    /// A peer that holds one rail with PFC.
    PfcStorm,
    /// A host that takes less than the line on one rail, and pauses the switch.
    SlowReceiver,
    /// A carrier that drops and comes back.
    LinkFlap,
    /// A cable that damages frames on one rail.
    BadCable,
    /// Incasts in a fabric that marks nothing.
    EcnOff,
    /// Incasts, and senders of this node that do not slow down for their CNPs.
    CnpIgnored,
    /// PFC on all eight priorities, and incasts.
    PfcAllPriorities,
    /// Rails that carry different shares of the job.
    RailImbalance,
    /// One link at half of its speed.
    SpeedDowngrade,
    /// A NIC that resets and counts from 0 again.
    CounterReset,
    /// A NIC whose counters stand still, and then cannot be read.
    StuckFirmware,
    /// The first five, one after the other.
    Tour,
}

impl Scenario {
    /// Every scenario; the tour plays the first of them, in this order.
    pub const ALL: [Self; 14] = [
        Self::Healthy,
        Self::Incast,
        Self::PfcStorm,
        Self::SlowReceiver,
        Self::LinkFlap,
        Self::BadCable,
        Self::EcnOff,
        Self::CnpIgnored,
        Self::PfcAllPriorities,
        Self::RailImbalance,
        Self::SpeedDowngrade,
        Self::CounterReset,
        Self::StuckFirmware,
        Self::Tour,
    ];

    /// The name that the command line takes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Incast => "incast",
            Self::PfcStorm => "pfc-storm",
            Self::SlowReceiver => "slow-receiver",
            Self::LinkFlap => "link-flap",
            Self::BadCable => "bad-cable",
            Self::EcnOff => "ecn-off",
            Self::CnpIgnored => "cnp-ignored",
            Self::PfcAllPriorities => "pfc-all-priorities",
            Self::RailImbalance => "rail-imbalance",
            Self::SpeedDowngrade => "speed-downgrade",
            Self::CounterReset => "counter-reset",
            Self::StuckFirmware => "stuck-firmware",
            Self::Tour => "tour",
        }
    }

    /// What is to be seen, in a line. Rails are counted from 0, as device names do.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Healthy => "a training job at about 90 % of all rails, a rare ECN mark, no pause",
            Self::Incast => {
                "8:1 incasts on rail 3: ECN marks, CNPs both ways, pauses of microseconds, sagging rate"
            }
            Self::PfcStorm => "a peer holds rail 5 with PFC for 20 s of each minute, and all rails wait",
            Self::SlowReceiver => {
                "the host of rail 6 takes 55 % of the line: it pauses the switch, DMA waits, frames find no buffer"
            }
            Self::LinkFlap => {
                "rail 2 loses its carrier three times in 8 s of each minute and retransmits afterwards"
            }
            Self::BadCable => {
                "rail 7 corrects too many bits and loses frames: CRC errors, gaps, retransmissions, timeouts"
            }
            Self::EcnOff => "8:1 incasts on rail 3 that nothing marks: long pauses, no ECN mark, no CNP",
            Self::CnpIgnored => {
                "8:1 incasts on rail 3, where this node's sender ignores its CNPs and keeps its rate"
            }
            Self::PfcAllPriorities => {
                "PFC on all priorities, not on 3 alone: the pauses of an incast stop everything else as well"
            }
            Self::RailImbalance => "rails 0, 2, 4 … carry four times as much as rails 1, 3, 5 …",
            Self::SpeedDowngrade => "rail 1 has two lanes of four, 200 Gb/s instead of 400",
            Self::CounterReset => {
                "the NIC of rail 4 resets for 2 s of each minute, and once recovers unseen: counters begin again at 0"
            }
            Self::StuckFirmware => {
                "hw_counters of rail 4 stand still for 20 s of each minute, later ethtool fails for 10 s"
            }
            Self::Tour => {
                "healthy, incast, pfc-storm, slow-receiver and link-flap, 30 s each, again and again"
            }
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Scenario {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find("scenario", &Self::ALL, Self::as_str, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.as_str().parse(), Ok(scenario));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        for (given, meant) in [
            ("pfcstorm", "pfc-storm"),
            ("incst", "incast"),
            ("flap", "link-flap"),
            ("cable", "bad-cable"),
            ("", "tour"),
        ] {
            let error = given.parse::<Scenario>().unwrap_err().to_string();
            assert!(
                error.contains(&format!("did you mean {meant:?}")),
                "{given}: {error}"
            );
            assert!(
                error.contains("There are: healthy, incast, pfc-storm,"),
                "{error}"
            );
        }
    }
}
