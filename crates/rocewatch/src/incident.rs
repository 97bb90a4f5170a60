//! An incident as it is kept: what happened together, and where its rows are.

use crate::event::{EventRecord, kept_as, rfc3339};
use crate::who::Holders;
use serde::{Deserialize, Serialize};

/// Rows are kept from so long before an incident began, in nanoseconds, …
pub(crate) const BEFORE: u64 = 60_000_000_000;
/// … to so long after.
pub(crate) const AFTER: u64 = 60_000_000_000;

/// What the record of a pin says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct IncidentRecord {
    pub(crate) id: String,
    /// When its first event began.
    #[serde(with = "rfc3339")]
    pub(crate) began: i64,
    /// The node's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// Version of the agent that kept it.
    pub(crate) version: String,
    /// What opened it, and what opened while its rows were collected, in the order in which it was noticed.
    pub(crate) events: Vec<EventRecord>,
    /// What had ended shortly before: not all of the minute before was usual.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier: Vec<EventRecord>,
    /// The ports with their settings as they were then: as `/api/v1/ports` gives them.
    pub(crate) ports: serde_json::Value,
    /// Who held queue pairs then; absent if the agent ended before the devices had answered, or did not ask yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holders: Option<Holders>,
}

impl IncidentRecord {
    /// An incident that begins with this event.
    pub(crate) fn opened(first: &EventRecord, earlier: Vec<EventRecord>, ports: serde_json::Value) -> Self {
        let time = jiff::Timestamp::from_nanosecond(first.began.into()).unwrap_or_default();
        let device = first.subject.device.as_deref().unwrap_or("node");
        let id = format!("{}-{}-{device}", time.strftime("%Y%m%dT%H%M%SZ"), first.event);
        Self {
            id: kept_as(&id),
            began: first.began,
            node: crate::files::node_name(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            events: Vec::new(),
            earlier,
            ports,
            holders: None,
        }
    }

    /// The record that is kept with the rows.
    pub(crate) fn record(&self) -> archive::Record {
        archive::Record {
            id: self.id.clone(),
            began: self.began,
            ended: Some(self.began.saturating_add_unsigned(AFTER)),
            body: serde_json::to_vec(self).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incident_of_a_version_that_asked_nobody_reads_back() {
        let kept = r#"{"id":"20261129T031205Z-pfc_storm-mlx5_3","began":"2026-11-29T03:12:05Z","version":"0.1.0","events":[],"ports":[]}"#;
        let record: IncidentRecord = serde_json::from_str(kept).unwrap();
        assert_eq!(record.holders, None);
        assert_eq!(serde_json::to_string(&record).unwrap(), kept);
    }
}
