//! `/api/v1/incidents`: what happened together, and the rows that are kept of it.

use super::api;
use super::asked;
use super::look_ups::LookUps;
use super::refusal::Refusal;
use super::sending;
use crate::incident::{AFTER, IncidentRecord};
use crate::past::Span;
use archive::{Archive, Damage};
use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use std::path::Path;

/// Incidents of a page, unless the client says otherwise, and at most.
const USUAL: u64 = 20;
const MOST: u64 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    since: Option<String>,
    until: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

/// What a client asks for, understood.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) span: Span,
    pub(crate) limit: u64,
    /// The id of the last incident of the page before.
    cursor: Option<String>,
}

/// Answers a request for the list. `now` is the wall time in nanoseconds since 1970.
pub(super) async fn list(look_ups: &LookUps, uri: &Uri, now: i64) -> Result<Response, Refusal> {
    let question = Question::parse(uri, now)?;
    let folder = look_ups.folder().to_owned();
    let (json, place) = look_ups
        .find(move |archive, patience| {
            let mut ids = archive.pins().to_vec();
            ids.sort_unstable_by(|a, b| b.cmp(a));
            let go_on = || patience.go_on().is_continue();
            api::json(&question.page(&folder, &ids, go_on))
        })
        .await?;
    Ok(sending::json(json, place))
}

/// Answers a request for one of them.
pub(super) async fn one(look_ups: &LookUps, id: String) -> Result<Response, Refusal> {
    let folder = look_ups.folder().to_owned();
    let (json, place) = look_ups
        .find(move |archive, _| {
            // The name of a file: only one that is listed is opened.
            if !archive.pins().contains(&id) {
                return Err(Refusal::not_found(format!(
                    "there is no incident {id:?}, or it had to make room: /api/v1/incidents lists those there are"
                )));
            }
            let pin = Archive::open_pin(&folder, &id)
                .map_err(|error| Refusal::unavailable(format!("the incident cannot be read: {error}")))?;
            let mut damages = pin.damages().to_vec();
            let record = record(&pin, &mut damages)
                .ok_or_else(|| Refusal::unavailable(format!("the record of the incident is damaged: {damages:?}")))?;
            api::json(&api::Incident::whole(record, &pin.tracks()))
        })
        .await?;
    Ok(sending::json(json, place))
}

fn record(pin: &Archive, damages: &mut Vec<Damage>) -> Option<IncidentRecord> {
    let (records, more) = pin.records(i64::MIN, i64::MAX).ok()?;
    damages.extend(more);
    let mut records = records.iter().rev();
    records.find_map(|record| serde_json::from_slice(&record.body).ok())
}

impl Question {
    /// Understands a query string.
    pub(crate) fn parse(uri: &Uri, now: i64) -> Result<Self, Refusal> {
        let asked: Parameters = asked::parameters(uri)?;
        Ok(Self {
            // The oldest are years away from any clock that is set.
            span: asked::span(
                asked.since.as_deref(),
                "2000-01-01T00:00:00Z",
                asked.until.as_deref(),
                now,
            )?,
            limit: asked::limit(asked.limit, USUAL, 1..=MOST)?,
            cursor: asked.cursor,
        })
    }

    /// `ids` are the newest first: they begin with the time.
    fn page(&self, folder: &Path, ids: &[String], go_on: impl Fn() -> bool) -> api::IncidentPage {
        let mut found = Vec::new();
        let mut damages = Vec::new();
        let mut next = None;
        let behind = |id: &&String| self.cursor.as_ref().is_none_or(|cursor| *id < cursor);
        for id in ids.iter().filter(behind) {
            if !go_on() {
                break;
            }
            // One that had to make room meanwhile is none.
            let Ok(pin) = Archive::open_pin(folder, id) else {
                continue;
            };
            damages.extend_from_slice(pin.damages());
            let Some(record) = record(&pin, &mut damages) else {
                continue;
            };
            if record.began.saturating_add_unsigned(AFTER) < self.span.from {
                break;
            }
            if record.began > self.span.to {
                continue;
            }
            if found.len() as u64 == self.limit {
                next = found.last().map(|last: &api::Incident| last.id.clone());
                break;
            }
            found.push(api::Incident::summary(record));
        }
        api::IncidentPage::new(found, next, &damages)
    }
}
