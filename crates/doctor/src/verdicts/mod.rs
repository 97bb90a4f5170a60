//! From rates to verdicts.

mod ecn;
mod loss;
mod pause;
mod rails;

use crate::check::Check;
use crate::finding::{Evidence, PortName};
use crate::policy::Policy;
use crate::table::traffic as table;
use crate::window::PortWindow;
use catalog::{Direction, Signal};
use signals::ratio::LEAST_PACKETS;
use std::fmt;

/// What the traffic of a window tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The row of the table that says it.
    pub check: &'static Check,
    /// Of which port; `None` of the node.
    pub port: Option<PortName>,
    /// Of which priority.
    pub priority: Option<u8>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What else it could be.
    pub otherwise: &'static [&'static str],
}

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Confidence {
    /// It fits, and so do others.
    Low,
    /// It fits best.
    Medium,
    /// Cause and effect were both seen.
    High,
}

impl Confidence {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// High if this was seen as well, medium if not.
    fn if_seen(corroborated: bool) -> Self {
        if corroborated { Self::High } else { Self::Medium }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the traffic of a node's ports tells. The windows are of the same time, one for each port; the rails are compared with
/// each other.
#[must_use]
pub fn verdicts(windows: &[PortWindow], policy: &Policy) -> Vec<Verdict> {
    let mut found = Vec::new();
    for window in windows {
        pause::look(window, policy, &mut found);
        ecn::look(window, policy, &mut found);
        loss::look(window, policy, &mut found);
        blindness(window, policy, &mut found);
    }
    rails::look(windows, &mut found);
    found
}

impl Verdict {
    fn of(
        check: &'static Check,
        window: &PortWindow,
        confidence: Confidence,
        evidence: Vec<Evidence>,
    ) -> Self {
        Self {
            check,
            port: Some(window.port.clone()),
            priority: None,
            confidence,
            evidence,
            otherwise: &[],
        }
    }

    fn on(self, priority: u8) -> Self {
        Self {
            priority: Some(priority),
            ..self
        }
    }

    fn or(self, otherwise: &'static [&'static str]) -> Self {
        Self { otherwise, ..self }
    }
}

fn percent(what: impl Into<String>, share: f64) -> Evidence {
    let digits = if share > 0.0 && share < 0.001 { 4 } else { 1 };
    Evidence::new(what, format!("{:.digits$} %", share * 100.0))
}

fn per_second(what: impl Into<String>, rate: f64) -> Evidence {
    Evidence::new(what, format!("{rate:.0}/s"))
}

/// A port that carries `RoCE`, and whose counters do not say what the fabric does to it.
fn blindness(window: &PortWindow, policy: &Policy, found: &mut Vec<Verdict>) {
    let packets = window.sum(&[Signal::PacketsRxRdma, Signal::PacketsTxRdma]);
    let Some(packets) = packets.filter(|packets| *packets >= LEAST_PACKETS as f64) else {
        return;
    };
    let mut missing = Vec::new();
    let has_pause = [Direction::Rx, Direction::Tx]
        .into_iter()
        .any(|direction| window.longest_pause(direction).is_some());
    if policy.wants_pfc() && window.pfc != Some(0) && !has_pause {
        missing.push("the time of pauses");
    }
    if policy.wants_ecn() {
        let has_cnps = window.rate(Signal::CnpTx).is_some() || window.cnps_received().is_some();
        if window.rate(Signal::EcnRxCe).is_none() && !has_cnps {
            missing.push("marks and CNPs");
        }
    }
    if !missing.is_empty() {
        let said = vec![
            per_second("RDMA packets", packets),
            Evidence::new("not counted", missing.join(", ")),
        ];
        let verdict = Verdict::of(&table::CANNOT_TELL, window, Confidence::High, said);
        found.push(verdict.or(&["the driver counts it, and the source does not answer or is switched off"]));
    }
}
