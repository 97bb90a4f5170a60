//! All numbers that decide.

use super::event::EventKind;
use super::latch::Rule;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const MINUTE: u64 = 60 * SECOND;

/// When each kind of event opens and closes, and when none may open. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// The rule of each kind, in the order of [`EventKind::ALL`]: see [`Self::rule`].
    pub rules: [Rule; EventKind::ALL.len()],
    /// Nothing opens for so long after the first look at a port.
    pub startup_grace: u64,
    /// Nothing of the link opens for so long after the node has booted: links train.
    pub boot_grace: u64,
    /// Nothing that a bad link explains opens while it is down, and for so long after it has come back.
    pub link_grace: u64,

    /// Below this share of the line a port is taken to send nothing, where pause is only known by its frames.
    pub storm_idle: f64,
    /// No other event of pause opens for so long after a storm: windows still span it.
    pub storm_grace: u64,
    /// The fabric marks packets (DCQCN), so that pause without marks is a fault. Not so where PFC alone holds senders.
    pub expect_ecn: bool,
    /// The priorities that are meant to be lossless, a bit each; `None` takes those on which the port has PFC.
    pub lossless: Option<u8>,
    /// More priorities with PFC than this are taken for a mistake, where none are said to be meant.
    pub most_lossless: u32,

    /// CNPs per packet that are usual anywhere: a port that has hardly any does not spike at the first.
    pub cnp_usual: f64,
    /// How long a port's traffic is watched before its CNPs can be unusual.
    pub cnp_learning: u64,
    /// How far back what is usual reaches.
    pub cnp_memory: u64,
    /// Fewer ignored CNPs a second than this are none.
    pub cnp_ignored_least: f64,

    /// The span in which lost carriers are counted.
    pub link_flap_window: u64,
    /// Bit error ratio before correction that is too much.
    pub fec_bit_errors: f64,
    /// Uncorrectable code words a second that are too many.
    pub fec_lost: f64,

    /// Rails that use less of their line than this on average are idle, and may be so unevenly.
    pub rail_least: f64,
    /// The span over which the rails are compared.
    pub rail_window: u64,
}

fn rule(open_at: f64, open_after: u64, close_below: f64, close_after: u64) -> Rule {
    Rule {
        open_at,
        open_after,
        close_below,
        close_after,
    }
}

/// Something that is there (1) or not (0).
fn state(open_after: u64, close_after: u64) -> Rule {
    rule(1.0, open_after, 1.0, close_after)
}

/// What is right for most: `docs/events.md` shows it beside what is measured.
fn default(kind: EventKind) -> Rule {
    match kind {
        // Two intervals of 200 ms: the detection time of switches' watchdogs (SONiC, Junos), in whole samples.
        EventKind::PfcStorm => rule(0.95, 400 * MS, 0.5, SECOND),
        EventKind::SustainedPause => rule(0.1, 10 * SECOND, 0.05, 10 * SECOND),
        EventKind::PauseWithoutCe => rule(0.005, 2 * SECOND, 0.001, 30 * SECOND),
        EventKind::PauseOnLossyPriority | EventKind::GlobalPause => rule(1.0, SECOND, 1.0, 30 * SECOND),
        EventKind::DropsOnLosslessPriority => rule(1.0, 0, 1.0, 10 * SECOND),
        EventKind::CnpSpike => rule(5.0, SECOND, 2.0, 10 * SECOND),
        EventKind::CeWithoutCnp => rule(10.0, 5 * SECOND, 1.0, 30 * SECOND),
        EventKind::CnpIgnored => rule(0.01, SECOND, 0.005, 30 * SECOND),
        EventKind::TransportErrors => rule(10.0, 3 * SECOND, 1.0, 10 * SECOND),
        EventKind::LinkDown => state(0, 5 * SECOND),
        EventKind::LinkFlap => rule(3.0, 0, 1.0, 0),
        EventKind::SpeedBelowUsual => rule(0.05, 10 * SECOND, 0.01, 0),
        EventKind::FecDegraded => rule(1.0, 5 * SECOND, 0.5, 30 * SECOND),
        EventKind::PcieBackpressure => rule(10.0, 30 * SECOND, 5.0, 30 * SECOND),
        EventKind::RailImbalance => rule(1.3, 30 * SECOND, 1.15, 30 * SECOND),
        EventKind::CounterReset => rule(1.0, 0, 1.0, 5 * SECOND),
        EventKind::SourceStalled => state(0, SECOND),
        EventKind::SourceFrozen => state(0, 10 * SECOND),
        // A transient error of discovery is not a vanished device.
        EventKind::DeviceGone => state(5 * SECOND, 0),
    }
}

impl Thresholds {
    /// When events of a kind open and close. What is compared is the measure of the table of events.
    #[must_use]
    pub fn rule(&self, kind: EventKind) -> &Rule {
        &self.rules[kind as usize]
    }

    /// The same, to be changed. A kind that opens at infinity never opens.
    pub fn rule_mut(&mut self, kind: EventKind) -> &mut Rule {
        &mut self.rules[kind as usize]
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            rules: EventKind::ALL.map(default),
            startup_grace: 5 * SECOND,
            boot_grace: 2 * MINUTE,
            link_grace: 10 * SECOND,

            storm_idle: 0.01,
            storm_grace: 5 * SECOND,
            expect_ecn: true,
            lossless: None,
            most_lossless: 3,

            cnp_usual: 1e-4,
            cnp_learning: MINUTE,
            cnp_memory: 10 * MINUTE,
            cnp_ignored_least: 100.0,

            link_flap_window: 10 * MINUTE,
            fec_bit_errors: 1e-5,
            fec_lost: 1.0,

            rail_least: 0.05,
            rail_window: 10 * SECOND,
        }
    }
}
