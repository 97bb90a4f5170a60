//! All numbers that decide.

use super::latch::Rule;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const MINUTE: u64 = 60 * SECOND;

/// When each kind of event opens and closes, and when none may open. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Nothing opens for so long after the first look at a port.
    pub startup_grace: u64,
    /// Nothing of the link opens for so long after the node has booted: links train.
    pub boot_grace: u64,
    /// Nothing that a bad link explains opens while it is down, and for so long after it has come back.
    pub link_grace: u64,

    /// Share of a sampling interval that received PFC stops a priority.
    pub storm_rx: Rule,
    /// The same of sent PFC.
    pub storm_tx: Rule,
    /// Below this share of the line a port is taken to send nothing, where pause is only known by its frames.
    pub storm_idle: f64,
    /// No other event of pause opens for so long after a storm: windows still span it.
    pub storm_grace: u64,
    /// Share of the last window that a priority was paused.
    pub sustained_pause: Rule,
    /// The fabric marks packets (DCQCN), so that pause without marks is a fault. Not so where PFC alone holds senders.
    pub expect_ecn: bool,
    /// Share of the last window that received PFC stopped a priority while no CNP and no mark came.
    pub pause_without_ce: Rule,
    /// The priorities that are meant to be lossless, a bit each; `None` takes those on which the port has PFC.
    pub lossless: Option<u8>,
    /// More priorities with PFC than this are taken for a mistake, where none are said to be meant.
    pub most_lossless: u32,
    /// PFC frames a second on a priority that is not meant to be lossless.
    pub pause_on_lossy_priority: Rule,
    /// Frames of global pause a second.
    pub global_pause: Rule,
    /// Packets dropped a second.
    pub drops_on_lossless_priority: Rule,

    /// CNPs per packet, as a multiple of what the port usually has.
    pub cnp_spike: Rule,
    /// CNPs per packet that are usual anywhere: a port that has hardly any does not spike at the first.
    pub cnp_usual: f64,
    /// How long a port's traffic is watched before its CNPs can be unusual.
    pub cnp_learning: u64,
    /// How far back what is usual reaches.
    pub cnp_memory: u64,
    /// CE-marked packets received a second while no CNP is sent.
    pub ce_without_cnp: Rule,
    /// Share of the received CNPs that were ignored.
    pub cnp_ignored: Rule,
    /// Fewer ignored CNPs a second than this are none.
    pub cnp_ignored_least: f64,

    /// Timeouts, gaps, retransmissions and damaged packets a second.
    pub transport_errors: Rule,

    /// 1 while the carrier is gone, or was between two looks.
    pub link_down: Rule,
    /// How often the carrier was lost within [`Self::link_flap_window`].
    pub link_flap: Rule,
    /// The span in which lost carriers are counted.
    pub link_flap_window: u64,
    /// Share of the usual speed that is missing.
    pub speed_below_usual: Rule,
    /// The worse of two shares: bit errors before correction of [`Self::fec_bit_errors`], and lost code words a second of
    /// [`Self::fec_lost`].
    pub fec_degraded: Rule,
    /// Bit error ratio before correction that is too much.
    pub fec_bit_errors: f64,
    /// Uncorrectable code words a second that are too many.
    pub fec_lost: f64,

    /// Share of a second for which DMA waited for the host, in percent, or packets dropped a second because it did.
    pub pcie_backpressure: Rule,

    /// What the busiest rail carries, as a multiple of the mean.
    pub rail_imbalance: Rule,
    /// Rails that use less of their line than this on average are idle, and may be so unevenly.
    pub rail_least: f64,
    /// The span over which the rails are compared.
    pub rail_window: u64,

    /// Counters that began anew.
    pub counter_reset: Rule,
    /// 1 while the agent says that a source does not answer.
    pub source_stalled: Rule,
    /// 1 while a source answers with values that stand still.
    pub source_frozen: Rule,
    /// 1 while the agent says that the device is not there.
    pub device_gone: Rule,
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

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            startup_grace: 5 * SECOND,
            boot_grace: 2 * MINUTE,
            link_grace: 10 * SECOND,

            // Two intervals of 200 ms: the detection time of switches' watchdogs (SONiC, Junos), in whole samples.
            storm_rx: rule(0.95, 400 * MS, 0.5, SECOND),
            storm_tx: rule(0.9, 400 * MS, 0.5, SECOND),
            storm_idle: 0.01,
            storm_grace: 5 * SECOND,
            sustained_pause: rule(0.1, 10 * SECOND, 0.05, 10 * SECOND),
            expect_ecn: true,
            pause_without_ce: rule(0.005, 2 * SECOND, 0.001, 30 * SECOND),
            lossless: None,
            most_lossless: 3,
            pause_on_lossy_priority: rule(1.0, SECOND, 1.0, 30 * SECOND),
            global_pause: rule(1.0, SECOND, 1.0, 30 * SECOND),
            drops_on_lossless_priority: rule(1.0, 0, 1.0, 10 * SECOND),

            cnp_spike: rule(5.0, SECOND, 2.0, 10 * SECOND),
            cnp_usual: 1e-4,
            cnp_learning: MINUTE,
            cnp_memory: 10 * MINUTE,
            ce_without_cnp: rule(10.0, 5 * SECOND, 1.0, 30 * SECOND),
            cnp_ignored: rule(0.01, SECOND, 0.005, 30 * SECOND),
            cnp_ignored_least: 100.0,

            transport_errors: rule(10.0, 3 * SECOND, 1.0, 10 * SECOND),

            link_down: state(0, 5 * SECOND),
            link_flap: rule(3.0, 0, 1.0, 0),
            link_flap_window: 10 * MINUTE,
            speed_below_usual: rule(0.05, 10 * SECOND, 0.01, 0),
            fec_degraded: rule(1.0, 5 * SECOND, 0.5, 30 * SECOND),
            fec_bit_errors: 1e-5,
            fec_lost: 1.0,

            pcie_backpressure: rule(10.0, 30 * SECOND, 5.0, 30 * SECOND),

            rail_imbalance: rule(1.3, 30 * SECOND, 1.15, 30 * SECOND),
            rail_least: 0.05,
            rail_window: 10 * SECOND,

            counter_reset: rule(1.0, 0, 1.0, 5 * SECOND),
            source_stalled: state(0, SECOND),
            source_frozen: state(0, 10 * SECOND),
            // A transient error of discovery is not a vanished device.
            device_gone: state(5 * SECOND, 0),
        }
    }
}
