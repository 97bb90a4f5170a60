//! `/api/v1/events`: what happened, from memory and, where there is one, from the archive.

use super::api;
use super::asked;
use super::look_ups::LookUps;
use super::refusal::Refusal;
use super::sending;
use crate::agent::Agent;
use crate::event::EventRecord;
use crate::past::Span;
use archive::{Archive, Damage};
use axum::http::Uri;
use axum::response::{IntoResponse as _, Json, Response};
use serde::Deserialize;
use signals::detect::{EventKind, Severity};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Events of a page, unless the client says otherwise, and at most.
const USUAL: u64 = 100;
const MOST: u64 = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    since: Option<String>,
    until: Option<String>,
    kind: Option<String>,
    port: Option<String>,
    severity: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

/// Which events are wanted.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    kind: Option<EventKind>,
    port: Option<String>,
    /// At least.
    severity: Option<Severity>,
}

/// What a client asks for, understood.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) span: Span,
    filter: Filter,
    pub(crate) limit: u64,
    cursor: Option<Position>,
}

/// Where an event stands in the order in which events are told.
type Position = (i64, String);

/// Answers a request. `now` is the wall time in nanoseconds since 1970.
pub(super) async fn answer(
    agent: &Agent,
    look_ups: Option<&LookUps>,
    uri: &Uri,
    now: i64,
) -> Result<Response, Refusal> {
    let question = Question::parse(uri, now)?;
    let remembered = remembered(agent);
    let Some(look_ups) = look_ups else {
        return Ok(Json(question.page(BTreeMap::new(), remembered, &[])).into_response());
    };
    let (json, place) = look_ups
        .find(move |archive, _| {
            let (archived, damages) = archived(archive, question.span)?;
            api::json(&question.page(archived, remembered, &damages))
        })
        .await?;
    Ok(sending::json(json, place))
}

/// The events of which there was a change lately, as they are now, oldest first.
fn remembered(agent: &Agent) -> Vec<Arc<EventRecord>> {
    let world = agent.world();
    let events = world.events();
    // What has been open for long may have no change that is remembered.
    let changed = events.since(0).map(|change| &change.event);
    events.open().iter().chain(changed).cloned().collect()
}

/// Events of the archive by their ids.
fn archived(archive: &Archive, span: Span) -> Result<(BTreeMap<String, EventRecord>, Vec<Damage>), Refusal> {
    let (records, damages) = archive
        .records(span.from, span.to)
        .map_err(|error| Refusal::unavailable(format!("the archive cannot be read: {error}")))?;
    // Other things than events may be recorded as well.
    let events = records
        .iter()
        .filter_map(|record| serde_json::from_slice::<EventRecord>(&record.body).ok());
    Ok((events.map(|event| (event.id.clone(), event)).collect(), damages))
}

impl Question {
    /// Understands a query string.
    pub(crate) fn parse(uri: &Uri, now: i64) -> Result<Self, Refusal> {
        let asked: Parameters = asked::parameters(uri)?;
        Ok(Self {
            span: asked::span(asked.since.as_deref(), "-24h", asked.until.as_deref(), now)?,
            filter: Filter::parse(asked.kind.as_deref(), asked.port, asked.severity.as_deref())?,
            limit: asked::limit(asked.limit, USUAL, 1..=MOST)?,
            cursor: asked.cursor.as_deref().map(position).transpose()?,
        })
    }

    fn page(
        &self,
        mut events: BTreeMap<String, EventRecord>,
        remembered: Vec<Arc<EventRecord>>,
        damages: &[Damage],
    ) -> api::EventPage {
        for event in remembered {
            // What is kept says which incident it is part of; what is remembered says how it went on since.
            let incident = events.get(&event.id).and_then(|kept| kept.incident.clone());
            let event = EventRecord {
                incident,
                ..EventRecord::clone(&event)
            };
            events.insert(event.id.clone(), event);
        }
        let mut wanted: Vec<EventRecord> = events.into_values().filter(|event| self.wants(event)).collect();
        wanted.sort_by_key(|event| std::cmp::Reverse((event.began, event.id.clone())));
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = wanted.len() > limit;
        wanted.truncate(limit);
        let next = wanted
            .last()
            .filter(|_| more)
            .map(|last| format!("{}-{}", last.began, last.id));
        api::EventPage::new(wanted, next, damages)
    }

    fn wants(&self, event: &EventRecord) -> bool {
        let before = |cursor: &Position| (event.began, &event.id) < (cursor.0, &cursor.1);
        event.began <= self.span.to
            && event.ended.is_none_or(|ended| ended >= self.span.from)
            && self.cursor.as_ref().is_none_or(before)
            && self.filter.takes(event)
    }
}

fn position(cursor: &str) -> Result<Position, Refusal> {
    cursor
        .split_once('-')
        .and_then(|(began, id)| Some((began.parse().ok()?, id.to_owned())))
        .ok_or_else(|| Refusal::bad_request("cursor: take it from `next` of the page before, unchanged"))
}

impl Filter {
    /// Understands parameters.
    pub(super) fn parse(
        kind: Option<&str>,
        port: Option<String>,
        severity: Option<&str>,
    ) -> Result<Self, Refusal> {
        let kind = kind.map(|name| {
            EventKind::from_name(name).ok_or_else(|| {
                let known = EventKind::ALL.map(EventKind::as_str).join(", ");
                Refusal::bad_request(format!("kind: there is no {name:?}; there are {known}"))
            })
        });
        let severity = severity.map(|name| {
            [Severity::Info, Severity::Warning, Severity::Critical]
                .into_iter()
                .find(|severity| severity.as_str() == name)
                .ok_or_else(|| {
                    Refusal::bad_request(format!("severity: {name:?} is none of info, warning, critical"))
                })
        });
        Ok(Self {
            kind: kind.transpose()?,
            port,
            severity: severity.transpose()?,
        })
    }

    /// True if the event is wanted.
    pub(super) fn takes(&self, event: &EventRecord) -> bool {
        let subject = &event.subject;
        // An address alone stands for all ports of a device.
        let address = |id: &str, wanted: &str| {
            id.strip_prefix(wanted)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.kind.is_none_or(|kind| event.event == kind.as_str())
            && self.severity.is_none_or(|least| severity(event) >= least)
            && self.port.as_deref().is_none_or(|port| {
                subject.device.as_deref() == Some(port)
                    || subject.netdev.as_deref() == Some(port)
                    || subject.port_id.as_deref().is_some_and(|id| address(id, port))
            })
    }
}

/// What another version of this program called otherwise counts as a warning.
fn severity(event: &EventRecord) -> Severity {
    match event.severity.as_str() {
        "info" => Severity::Info,
        "critical" => Severity::Critical,
        _ => Severity::Warning,
    }
}
