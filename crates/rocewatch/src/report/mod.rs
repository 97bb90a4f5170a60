//! What an incident was: what moved first, what each port did, and what that tells; from its rows alone.

mod moved;
mod page;
mod play;
pub(crate) mod timeline;

pub(crate) use page::page;

use crate::event::rfc3339;
use crate::incident::IncidentRecord;
use archive::Archive;
use doctor::{Policy, PortWindow, Verdict};
use moved::Moved;
use play::{Measured, Played};
use serde::Serialize;
use std::cmp::Reverse;

/// All there is to say of an incident.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) incident: IncidentRecord,
    /// The time that rows are there of.
    pub(crate) rows: Option<Span>,
    /// What the traffic tells, the surest first.
    pub(crate) verdicts: Vec<Told>,
    /// What left its usual range, in the order in which it did; what cannot be told apart by nearness to the cause.
    pub(crate) moved: Vec<Moved>,
    /// What each port did before, during and after.
    pub(crate) ports: Vec<PortCourse>,
    /// What of the rows cannot be read.
    pub(crate) damages: Vec<String>,
}

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Span {
    #[serde(with = "rfc3339")]
    pub(crate) from: i64,
    #[serde(with = "rfc3339")]
    pub(crate) to: i64,
}

/// A verdict for people and programs.
#[derive(Serialize)]
pub(crate) struct Told {
    pub(crate) verdict: &'static str,
    pub(crate) title: &'static str,
    pub(crate) confidence: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<u8>,
    pub(crate) evidence: Vec<String>,
    /// What else it could be.
    pub(crate) otherwise: &'static [&'static str],
    pub(crate) advice: &'static str,
}

/// What a port did.
#[derive(Serialize)]
pub(crate) struct PortCourse {
    pub(crate) device: String,
    pub(crate) port: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) netdev: Option<String>,
    pub(crate) measures: Vec<Measured>,
}

impl Report {
    /// The report of an incident whose rows are in `archive`.
    pub(crate) fn of(incident: IncidentRecord, archive: &Archive) -> Self {
        let spans = archive.tracks();
        let rows = spans
            .iter()
            .map(|span| span.first)
            .min()
            .zip(spans.iter().map(|span| span.last).max());
        let rows = rows.map(|(from, to)| Span { from, to });
        let times = Times::of(&incident, rows);
        let mut damages: Vec<_> = archive.damages().iter().map(ToString::to_string).collect();
        let played: Vec<Played> = play::ports(archive)
            .into_iter()
            .map(|port| Played::of(archive, &port, &times, &mut damages))
            .collect();
        let windows: Vec<PortWindow> = played
            .iter()
            .filter_map(|port| {
                let held = incident.holders.as_ref();
                let flows = held.and_then(|holders| holders.queue_pairs(&port.port.device));
                let mut window = port.window.clone()?;
                window.flows = flows;
                Some(window)
            })
            .collect();
        let mut verdicts = doctor::verdicts(&windows, &Policy::default());
        verdicts.sort_by_key(|verdict| Reverse((verdict.check.severity, verdict.confidence)));
        let moved = played.iter().flat_map(|port| port.moved.iter().cloned());
        let moved = moved::in_order(moved.collect());
        let ports = played.into_iter().map(|port| PortCourse {
            device: port.port.device,
            port: port.port.id.number,
            netdev: port.port.netdev,
            measures: port.measures,
        });
        Self {
            rows,
            verdicts: verdicts.iter().map(Told::of).collect(),
            moved,
            ports: ports.collect(),
            damages,
            incident,
        }
    }
}

/// What is compared with what.
struct Times {
    /// From when its first event began to when the last of them ended, as far as there are rows.
    during: Span,
    /// When there was an event. Two storms may have a calm between them, which says nothing of either.
    events: Vec<Span>,
    /// Of the time before, what was not usual either.
    unusual: Vec<Span>,
}

/// The least that has a rate of everything.
const LEAST: i64 = 1_000_000_000;
/// What an event does to counters lasts so much longer than it.
const AFTERMATH: i64 = 2_000_000_000;

impl Times {
    fn of(incident: &IncidentRecord, rows: Option<Span>) -> Self {
        let last = rows.map_or(i64::MAX, |rows| rows.to);
        let ends = incident.events.iter().map(|event| event.ended.unwrap_or(last));
        let end = ends.max().unwrap_or(last);
        let span = |from: i64, to: i64| Span {
            from,
            to: to.max(from.saturating_add(LEAST)).min(last),
        };
        let events = incident
            .events
            .iter()
            .map(|event| span(event.began, event.ended.unwrap_or(last)));
        let unusual = incident.earlier.iter().filter_map(|event| {
            Some(Span {
                from: event.began,
                to: event.ended?.saturating_add(AFTERMATH),
            })
        });
        Self {
            during: span(incident.began, end),
            events: events.collect(),
            unusual: unusual.collect(),
        }
    }
}

impl Told {
    fn of(verdict: &Verdict) -> Self {
        let port = verdict.port.as_ref();
        Self {
            verdict: verdict.check.id,
            title: verdict.check.title,
            confidence: verdict.confidence.as_str(),
            device: port.map(|port| port.device.clone()),
            port: port.map(|port| port.id.number),
            priority: verdict.priority,
            evidence: verdict
                .evidence
                .iter()
                .map(|evidence| format!("{} {}", evidence.what, evidence.says))
                .collect(),
            otherwise: verdict.otherwise,
            advice: verdict.check.advice,
        }
    }
}
