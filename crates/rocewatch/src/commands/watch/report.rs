//! What is told of a run, and kept to compare a later one with.

use crate::event::EventRecord;
use serde::{Deserialize, Serialize};

/// The number of this shape: a file of another shape is not compared with.
pub(super) const SHAPE: u32 = 1;

/// A run of a command and what the ports did meanwhile, whoever caused it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) shape: u32,
    pub(super) rocewatch: String,
    pub(super) command: Vec<String>,
    /// RFC 3339.
    pub(super) started: String,
    pub(super) seconds: f64,
    /// The command's, or 128 and the signal that ended it, as shells say it.
    pub(super) exit_status: u8,
    pub(super) ports: Vec<PortReport>,
    /// Absent where fewer than two rails carried anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rails: Option<Rails>,
    pub(super) findings: Vec<Finding>,
    /// What the detectors found meanwhile, of docs/events.md; one without an end goes on at the end of the run.
    #[serde(default)]
    pub(super) events: Vec<EventRecord>,
    /// Events beyond these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) further_events: u64,
    /// What the counters of the run mean taken together, by the doctor's table.
    pub(super) explanations: Vec<Explanation>,
    pub(super) verdict: Verdict,
    /// How it compares with an earlier run, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) baseline: Option<Comparison>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature is serde's
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What one port did. What nobody can tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PortReport {
    pub(super) device: String,
    #[serde(rename = "port")]
    pub(super) number: u32,
    pub(super) netdev: Option<String>,
    pub(super) rail: Option<usize>,
    pub(super) bits_per_second: Option<f64>,
    pub(super) rx: Traffic,
    pub(super) tx: Traffic,
    /// Those that were above zero.
    pub(super) pauses: Vec<Pause>,
    pub(super) ce_packets: Option<u64>,
    /// Of the received RDMA packets; absent of fewer than 1,000.
    pub(super) ce_share: Option<f64>,
    pub(super) cnps_sent: Option<u64>,
    pub(super) cnps_received: Option<u64>,
    pub(super) cnps_ignored: Option<u64>,
    pub(super) link_downs: Option<u64>,
    /// Those that were above zero.
    pub(super) faults: Vec<Fault>,
    /// Counters that fell meanwhile; what they counted is left out.
    pub(super) began_anew: usize,
    /// The port was not there any more at the end.
    pub(super) gone: bool,
}

/// One direction of a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Traffic {
    /// Of the physical port, RDMA included.
    pub(super) bytes: Option<f64>,
    pub(super) packets: Option<f64>,
    pub(super) rdma_bytes: Option<f64>,
    pub(super) rdma_packets: Option<f64>,
    /// Share of the line over the whole run, with preamble and gap of each packet.
    pub(super) utilization: Option<f64>,
    /// The same of the busiest second.
    pub(super) busiest_second: Option<f64>,
    /// The same of the busiest sampling interval, 200 ms with most NICs.
    pub(super) peak: Option<f64>,
}

/// Pause of one priority, or of the whole port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Pause {
    /// `rx`: the fabric stopped this node; `tx`: this node stopped the fabric.
    pub(super) direction: String,
    /// Absent of global pause (802.3x).
    pub(super) priority: Option<u8>,
    pub(super) seconds: Option<f64>,
    /// Of the run.
    pub(super) share: Option<f64>,
    pub(super) busiest_second: Option<f64>,
    pub(super) frames: Option<f64>,
}

/// Errors or drops of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Fault {
    /// The metric that shows them.
    pub(super) metric: String,
    /// Its labels' values.
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<u8>,
    pub(super) count: u64,
}

/// The rails that carried anything beside each other.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Rails {
    /// `bytes`, or `packets` where some have no bytes.
    pub(super) unit: String,
    pub(super) carrying: usize,
    pub(super) of: usize,
    /// Received and sent together.
    pub(super) median: f64,
    pub(super) least: RailShare,
    pub(super) most: RailShare,
}

/// One rail beside the median.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RailShare {
    pub(super) device: String,
    pub(super) of_median: f64,
}

/// Something worth saying.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) kind: FindingKind,
    /// Absent of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<String>,
    pub(super) says: String,
}

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FindingKind {
    BelowLineRate,
    Paused,
    Pausing,
    Marked,
    MarkedWithoutCnp,
    CnpIgnored,
    Faults,
    LinkDown,
    RailsUneven,
    CountersBeganAnew,
    PortGone,
    NotMeasured,
}

/// What counters mean taken together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Explanation {
    /// The check of docs/checks.md.
    pub(super) check: String,
    /// Absent of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<u8>,
    pub(super) confidence: String,
    pub(super) says: String,
    pub(super) evidence: Vec<String>,
    /// What else it could be.
    pub(super) otherwise: Vec<String>,
    pub(super) advice: String,
}

/// All in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// There is nothing to say.
    Clean,
    /// There are findings, or events that are more than information.
    Findings,
    /// Nothing could be measured.
    NotMeasured,
}

/// A run beside an earlier one.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Comparison {
    /// When the earlier one was.
    pub(super) with: String,
    /// What is worse than then by more than the tolerance; empty if nothing is.
    pub(super) regressions: Vec<Regression>,
}

/// What is worse than it was.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Regression {
    pub(super) device: String,
    pub(super) what: String,
    pub(super) was: f64,
    pub(super) is: f64,
    pub(super) says: String,
}
