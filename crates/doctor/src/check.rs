//! What a check is.

use crate::table::CHECKS;
use std::fmt;

/// How much a finding matters, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is slower or lost for it.
    Note,
    /// Performance or safety is less than it could be.
    Warning,
    /// RDMA traffic is lost, stopped or far slower.
    Error,
}

impl Severity {
    /// Every severity, the worst first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    /// The name that labels and the command line use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the titles say it
pub enum Area {
    Pfc,
    Marking,
    Ecn,
    Link,
    Pci,
    Network,
    Gpu,
    Health,
    Traffic,
}

impl Area {
    /// Every area, in the order of the document.
    pub const ALL: [Self; 9] = [
        Self::Pfc,
        Self::Marking,
        Self::Ecn,
        Self::Link,
        Self::Pci,
        Self::Network,
        Self::Gpu,
        Self::Health,
        Self::Traffic,
    ];

    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Pfc => "PFC and buffers",
            Self::Marking => "Trust, DSCP and classes",
            Self::Ecn => "ECN and CNP",
            Self::Link => "Link and MTU",
            Self::Pci => "PCI Express",
            Self::Network => "GIDs, addresses and routes",
            Self::Gpu => "GPUDirect",
            Self::Health => "Versions, temperature, optics",
            Self::Traffic => "Verdicts on traffic",
        }
    }
}

/// Whether a check looks at the configuration or at traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It looks at the configuration and gives findings.
    Configuration,
    /// It looks at a window of traffic and gives verdicts.
    Traffic,
}

/// One row of the table of checks.
#[derive(Debug, PartialEq, Eq)]
pub struct Check {
    /// The name that labels, the API and `--explain` use.
    pub id: &'static str,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// What it is about.
    pub area: Area,
    /// How much it matters.
    pub severity: Severity,
    /// What is read, where, and with which right if any is needed.
    pub reads: &'static str,
    /// When it fires, and when it must not.
    pub fires: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// What to do, in words.
    pub advice: &'static str,
    /// Commands that mend it, or show more; `{netdev}`, `{device}`, `{pci}` and what else the finding fills in.
    pub commands: &'static [&'static str],
}

impl Check {
    /// Whether it looks at the configuration or at traffic.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.area {
            Area::Traffic => Status::Traffic,
            _ => Status::Configuration,
        }
    }
}

/// The check of this name.
#[must_use]
pub fn check(id: &str) -> Option<&'static Check> {
    CHECKS.iter().copied().find(|check| check.id == id)
}
