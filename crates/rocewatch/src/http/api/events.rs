//! The shapes of `/api/v1/events` and `/api/v1/incidents`.

use super::history::Damaged;
use crate::event::{EventRecord, rfc3339};
use crate::incident::IncidentRecord;
use crate::who::Holders;
use archive::{Damage, TrackSpan};
use serde::Serialize;

/// A page of events, the newest first.
#[derive(Serialize)]
pub(crate) struct EventPage {
    pub(crate) events: Vec<EventRecord>,
    /// The cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    /// What cannot be read of the records of this time.
    damages: Vec<Damaged>,
}

impl EventPage {
    pub(crate) fn new(events: Vec<EventRecord>, next: Option<String>, damages: &[Damage]) -> Self {
        Self {
            events,
            next,
            damages: damages.iter().map(Damaged::of).collect(),
        }
    }
}

/// A page of incidents, the newest first.
#[derive(Serialize)]
pub(crate) struct IncidentPage {
    pub(crate) incidents: Vec<Incident>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    damages: Vec<Damaged>,
}

impl IncidentPage {
    pub(crate) fn new(incidents: Vec<Incident>, next: Option<String>, damages: &[Damage]) -> Self {
        Self {
            incidents,
            next,
            damages: damages.iter().map(Damaged::of).collect(),
        }
    }
}

/// An incident.
#[derive(Serialize)]
pub(crate) struct Incident {
    pub(crate) id: String,
    #[serde(with = "rfc3339")]
    began: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    version: String,
    events: Vec<EventRecord>,
    /// What had ended shortly before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<EventRecord>,
    /// The ports with their settings as they were then: on the page of one incident alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    ports: Option<serde_json::Value>,
    /// Who held queue pairs then: on the page of one incident alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    holders: Option<Holders>,
    /// The rows that are kept, on the page of one incident alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Kept>>,
}

/// Rows of one source that are kept at the full rate.
#[derive(Serialize)]
pub(crate) struct Kept {
    device: String,
    port: u32,
    source: &'static str,
    #[serde(with = "rfc3339")]
    first: i64,
    #[serde(with = "rfc3339")]
    last: i64,
    rows: u64,
}

impl Incident {
    /// As a list shows it.
    pub(crate) fn summary(record: IncidentRecord) -> Self {
        Self {
            id: record.id,
            began: record.began,
            node: record.node,
            version: record.version,
            events: record.events,
            earlier: record.earlier,
            ports: None,
            holders: None,
            rows: None,
        }
    }

    /// With all that is kept beside it.
    pub(crate) fn whole(mut record: IncidentRecord, tracks: &[TrackSpan]) -> Self {
        let ports = std::mem::take(&mut record.ports);
        let holders = record.holders.take();
        let kept = |span: &TrackSpan| Kept {
            device: span.track.device.clone(),
            port: span.track.port.number,
            source: span.track.source.as_str(),
            first: span.first,
            last: span.last,
            rows: span.rows,
        };
        Self {
            ports: Some(ports),
            holders,
            rows: Some(tracks.iter().map(kept).collect()),
            ..Self::summary(record)
        }
    }
}
