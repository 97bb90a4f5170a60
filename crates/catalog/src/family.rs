//! Metric families: the names under which signals go out.

use crate::{FAMILIES, Index, Signal};

/// What every exposed name begins with.
pub const PREFIX: &str = "rocewatch_";

/// How a metric family is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FamilyKind {
    /// Cumulative; the exposed name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative histogram.
    Histogram,
}

/// Where the values of a family come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The signals of `from`, in base units.
    Counters,
    /// The counters of one source as the driver names and scales them.
    Raw,
    /// Calculated from counters or from facts of the port.
    Derived,
    /// What the agent tells of itself.
    Agent,
}

/// Whether a family is exposed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Exposed.
    Live,
    /// Named so that nothing else takes the name; not exposed yet.
    Planned,
}

/// One metric family of the contract.
#[derive(Debug)]
pub struct Family {
    /// The heading that it stands under in documents.
    pub section: &'static str,
    /// Name without the `rocewatch_` prefix and without `_total`.
    pub name: &'static str,
    /// Its type.
    pub kind: FamilyKind,
    /// The unit that the name ends in, for `# UNIT` of `OpenMetrics`; may be empty.
    pub unit: &'static str,
    /// Where its values come from.
    pub origin: Origin,
    /// Whether it is exposed yet.
    pub status: Status,
    /// Whether alerts or the view of a whole fabric need it: the profile `minimal` shows nothing else.
    pub essential: bool,
    /// HELP, in a sentence.
    pub help: &'static str,
    /// Label names, in the order in which they are exposed.
    pub labels: &'static [&'static str],
    /// The signals that go out under this name, with the label values that tell them apart.
    pub from: &'static [From],
}

/// A signal that feeds a family.
#[derive(Debug)]
pub struct From {
    /// The signal.
    pub signal: Signal,
    /// Labels that the signal fixes, such as `direction` or `error`.
    pub labels: &'static [(&'static str, &'static str)],
}

impl Family {
    /// The name under which it is exposed: with the prefix, and with `_total` if it is a counter.
    #[must_use]
    pub fn exposed_name(&self) -> String {
        let suffix = if self.kind == FamilyKind::Counter {
            "_total"
        } else {
            ""
        };
        format!("{PREFIX}{}{suffix}", self.name)
    }

    /// The label that an index fills, and with it the rule of which counters the family takes: with the label
    /// `priority` those of one priority, with `lane` those of one lane, with neither those without an index.
    #[must_use]
    pub fn index_label(&self) -> Option<&'static str> {
        self.labels
            .iter()
            .copied()
            .find(|label| matches!(*label, "priority" | "lane"))
    }

    /// How a signal at this index goes out under this family; `None` if it does not.
    #[must_use]
    pub fn takes(&self, signal: Signal, index: Option<Index>) -> Option<&'static From> {
        let index_label = match index {
            None => None,
            Some(Index::Priority(_)) => Some("priority"),
            Some(Index::Lane(_)) => Some("lane"),
            Some(Index::TrafficClass(_) | Index::Queue(_) | Index::Dscp(_)) => return None,
        };
        if index_label != self.index_label() {
            return None;
        }
        self.from.iter().find(|from| from.signal == signal)
    }
}

/// The family of this name.
#[must_use]
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}
