//! What begins and ends.

use catalog::Direction;
use std::fmt;

/// What can happen to a port, or between the ports of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
// The table of events says what they mean.
#[allow(missing_docs)]
pub enum EventKind {
    PfcStorm,
    SustainedPause,
    PauseWithoutCe,
    PauseOnLossyPriority,
    GlobalPause,
    DropsOnLosslessPriority,
    CnpSpike,
    CeWithoutCnp,
    CnpIgnored,
    TransportErrors,
    LinkDown,
    LinkFlap,
    SpeedBelowUsual,
    FecDegraded,
    PcieBackpressure,
    RailImbalance,
    CounterReset,
    SourceStalled,
    SourceFrozen,
    DeviceGone,
}

impl EventKind {
    /// Every kind, in the order of the table of events.
    pub const ALL: [Self; 20] = [
        Self::PfcStorm,
        Self::SustainedPause,
        Self::PauseWithoutCe,
        Self::PauseOnLossyPriority,
        Self::GlobalPause,
        Self::DropsOnLosslessPriority,
        Self::CnpSpike,
        Self::CeWithoutCnp,
        Self::CnpIgnored,
        Self::TransportErrors,
        Self::LinkDown,
        Self::LinkFlap,
        Self::SpeedBelowUsual,
        Self::FecDegraded,
        Self::PcieBackpressure,
        Self::RailImbalance,
        Self::CounterReset,
        Self::SourceStalled,
        Self::SourceFrozen,
        Self::DeviceGone,
    ];

    /// The name that labels, the API and the configuration use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PfcStorm => "pfc_storm",
            Self::SustainedPause => "sustained_pause",
            Self::PauseWithoutCe => "pause_without_ce",
            Self::PauseOnLossyPriority => "pause_on_lossy_priority",
            Self::GlobalPause => "global_pause",
            Self::DropsOnLosslessPriority => "drops_on_lossless_priority",
            Self::CnpSpike => "cnp_spike",
            Self::CeWithoutCnp => "ce_without_cnp",
            Self::CnpIgnored => "cnp_ignored",
            Self::TransportErrors => "transport_errors",
            Self::LinkDown => "link_down",
            Self::LinkFlap => "link_flap",
            Self::SpeedBelowUsual => "speed_below_usual",
            Self::FecDegraded => "fec_degraded",
            Self::PcieBackpressure => "pcie_backpressure",
            Self::RailImbalance => "rail_imbalance",
            Self::CounterReset => "counter_reset",
            Self::SourceStalled => "source_stalled",
            Self::SourceFrozen => "source_frozen",
            Self::DeviceGone => "device_gone",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// True of what links show while they train after a boot, and of what follows from it.
    pub(super) fn waits_for_boot(self) -> bool {
        matches!(
            self,
            Self::LinkDown
                | Self::LinkFlap
                | Self::SpeedBelowUsual
                | Self::FecDegraded
                | Self::TransportErrors
        )
    }

    /// True of what a link without rest explains: one that is down, or has just come back.
    pub(super) fn waits_for_link(self) -> bool {
        !matches!(
            self,
            Self::LinkDown
                | Self::LinkFlap
                | Self::RailImbalance
                | Self::CounterReset
                | Self::SourceStalled
                | Self::SourceFrozen
                | Self::DeviceGone
        )
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How much an event is worth to somebody who is asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// To be known when something else is looked into.
    Info,
    /// To be looked into in working hours: jobs are slower than they should be, or soon will be.
    Warning,
    /// To be looked into now: jobs stand still or fail.
    Critical,
}

impl Severity {
    /// `info`, `warning` or `critical`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Something that has begun, and perhaps ended. Times are those of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What it is.
    pub kind: EventKind,
    /// How much it matters.
    pub severity: Severity,
    /// Of which priority; `None` if it is the port's own.
    pub priority: Option<u8>,
    /// In which direction, where it has one. Of pause: received, the fabric stops this node; sent, this node stops the fabric.
    pub direction: Option<Direction>,
    /// When it began: the beginning of the first sample that showed it, which is before it was known.
    pub began: u64,
    /// When it ended: the beginning of the first sample that no longer showed it. `None` while it lasts.
    pub ended: Option<u64>,
    /// What was measured when it opened or closed, by name, in base units; of a closed one `peak` is the worst that was seen.
    pub evidence: Vec<(&'static str, f64)>,
}

/// An event has begun, or one that had begun has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum EventChange {
    /// It has no end yet.
    Opened(Event),
    /// It has ended; kind, priority, direction and beginning are those of when it opened.
    Closed(Event),
}

impl EventChange {
    /// The event, as it is after the change.
    #[must_use]
    pub fn event(&self) -> &Event {
        match self {
            Self::Opened(event) | Self::Closed(event) => event,
        }
    }
}
