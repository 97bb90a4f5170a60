//! `/api/v1/history`: every value of every counter, in pages of whole steps.

use super::api;
use super::asked;
use super::look_ups::{LookUps, Patience};
use super::refusal::Refusal;
use super::sending;
use crate::past::{Span, Wanted};
use archive::{Archive, Query, Step, Stepped, TrackSpan};
use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
/// Values of a page, unless the client says otherwise.
const USUAL_LIMIT: u64 = 10_000;
/// Values of a page at most: some 10 MB of JSON.
const MOST_LIMIT: u64 = 100_000;

/// Nanoseconds in which there is a row before, of all that is read more often than once a minute.
const BEFORE: u64 = 60 * SECOND;

/// The parameters, as those of `rocewatch history`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    at: Option<String>,
    window: Option<String>,
    since: Option<String>,
    until: Option<String>,
    port: Option<String>,
    signal: Option<String>,
    step: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

/// What a client asks for, understood.
#[derive(Debug)]
pub(crate) struct Question {
    port: Option<String>,
    signal: Option<String>,
    pub(crate) span: Span,
    pub(crate) step: NonZeroU64,
    pub(crate) limit: u64,
}

/// Answers a request. `now` is the wall time in nanoseconds since 1970.
pub(super) async fn answer(look_ups: &LookUps, uri: &Uri, now: i64) -> Result<Response, Refusal> {
    let question = Question::parse(uri, now)?;
    let (json, place) = look_ups
        .find(move |archive, patience| api::json(&question.page(archive, patience)?))
        .await?;
    Ok(sending::json(json, place))
}

impl Question {
    /// Understands a query string.
    pub(crate) fn parse(uri: &Uri, now: i64) -> Result<Self, Refusal> {
        let parameters: Parameters = asked::parameters(uri)?;
        let limit = asked::limit(parameters.limit, USUAL_LIMIT, 1..=MOST_LIMIT)?;
        Ok(Self {
            span: parameters.span(now)?,
            step: parameters.step()?,
            limit,
            port: parameters.port,
            signal: parameters.signal,
        })
    }

    fn page(&self, archive: &Archive, patience: &Patience) -> Result<api::History, Refusal> {
        let wanted = Wanted {
            port: self.port.as_deref(),
            signal: self.signal.as_deref(),
        };
        let (tracks, columns) = self.tracks(archive, &wanted)?;
        let step = self.step.get();
        let fitting = self.limit / columns.max(1);
        if fitting == 0 {
            return Err(Refusal::bad_request(format!(
                "{columns} counters do not fit into a page of {} values: name a port or a signal, or raise limit",
                self.limit
            )));
        }
        let first = tracks
            .iter()
            .filter_map(|found| first_row(archive, found, self.span));
        let from = first
            .min()
            .map_or(self.span.to, |first| start(first, step))
            .max(self.span.from);
        let span = Span {
            from,
            to: start(from, step)
                .saturating_add_unsigned(fitting.saturating_mul(step))
                .min(self.span.to),
        };
        let mut found = Vec::new();
        let mut damages = Vec::new();
        for track in tracks {
            if patience.go_on().is_break() {
                break;
            }
            let (more, unreadable) = look_up(archive, &track, &wanted, span, self.step);
            found.extend(more);
            damages.extend(unreadable);
        }
        let next = (span.to < self.span.to).then(|| format!("{}-{}", span.to, self.span.to));
        Ok(api::History::new(
            (span.from, span.to),
            step,
            &found,
            next,
            &damages,
        ))
    }

    /// The tracks that are asked for, and how many counters of them.
    fn tracks(&self, archive: &Archive, wanted: &Wanted<'_>) -> Result<(Vec<TrackSpan>, u64), Refusal> {
        let mut tracks = archive.tracks();
        tracks.retain(|found| wanted.track(found));
        if tracks.is_empty() {
            return Err(Refusal::not_found(match &self.port {
                Some(port) => {
                    format!("the archive has no port {port:?}: /api/v1/ports lists those there are now")
                }
                None => "the archive is empty: nothing has been recorded yet".to_owned(),
            }));
        }
        let columns = |found: &TrackSpan| {
            let schema = found.track.schema();
            let wanted = schema.columns.iter().filter(|column| wanted.column(column));
            wanted.count() as u64
        };
        tracks.retain(|found| columns(found) > 0);
        if tracks.is_empty() {
            return Err(Refusal::not_found(format!(
                "no port that is asked for has a counter or signal {:?}: `rocewatch counters` lists them",
                self.signal.as_deref().unwrap_or_default()
            )));
        }
        tracks.retain(|found| found.first < self.span.to && found.last >= self.span.from);
        let count = tracks.iter().map(columns).sum();
        Ok((tracks, count))
    }
}

/// When the step of a time begins.
fn start(time: i64, step: u64) -> i64 {
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    time.saturating_sub(time.rem_euclid(step))
}

/// The time of the first row of a track in a span: pages pass over what was not recorded.
fn first_row(archive: &Archive, found: &TrackSpan, span: Span) -> Option<i64> {
    let track = &found.track;
    let query = Query {
        port: &track.port,
        source: track.source,
        columns: &[&*track.columns.first()?.name],
        from: span.from,
        to: span.to.saturating_sub(1),
    };
    let mut first = None;
    archive.visit(&query, |rows| {
        let times = rows.times.iter().map(|time| time.wall);
        first = times.filter(|wall| *wall >= span.from).min();
        ControlFlow::Break(())
    });
    first
}

fn look_up(
    archive: &Archive,
    found: &TrackSpan,
    wanted: &Wanted<'_>,
    span: Span,
    step: NonZeroU64,
) -> (Vec<Stepped>, Vec<archive::Damage>) {
    let schema = found.track.schema();
    let columns = schema.columns.iter().filter(|column| wanted.column(column));
    let columns: Vec<&str> = columns.map(|column| &*column.name).collect();
    let query = Query {
        port: &found.track.port,
        source: found.track.source,
        columns: &columns,
        // What happened since the row before: pages put together are the answer in one.
        from: span.from.saturating_sub_unsigned(step.get().max(BEFORE)),
        to: span.to.saturating_sub(1),
    };
    let (mut stepped, damages) = archive.stepped(&query, step);
    let inside = |step: &Step| (span.from..span.to).contains(&step.time.wall);
    // The query is by port: it finds the rows of its other tracks as well, which come in their turn.
    stepped.retain(|stepped| stepped.track == found.track);
    for series in &mut stepped {
        series.steps.retain(inside);
    }
    (stepped, damages)
}

impl Parameters {
    fn span(&self, now: i64) -> Result<Span, Refusal> {
        if let Some(cursor) = &self.cursor {
            return span_of_cursor(cursor);
        }
        let Some(at) = &self.at else {
            if self.window.is_some() {
                return Err(Refusal::bad_request("window goes with at"));
            }
            return asked::span(self.since.as_deref(), "-15m", self.until.as_deref(), now);
        };
        if self.since.is_some() || self.until.is_some() {
            return Err(Refusal::bad_request(
                "at goes with window, not with since or until",
            ));
        }
        let at = asked::time("at", at, now)?;
        let window = asked::duration("window", self.window.as_deref().unwrap_or("2m"))?;
        let window = crate::clock::nanos(window).max(1);
        Ok(Span {
            from: at.saturating_sub_unsigned(window),
            to: at.saturating_add_unsigned(window),
        })
    }

    fn step(&self) -> Result<NonZeroU64, Refusal> {
        let step = self
            .step
            .as_deref()
            .map_or(Ok(Duration::from_secs(1)), |step| asked::duration("step", step))?;
        NonZeroU64::new(crate::clock::nanos(step))
            .filter(|step| step.get() >= SECOND)
            .ok_or_else(|| {
                Refusal::bad_request("step: the archive has one row a second, so a step is at least 1s")
            })
    }
}

fn span_of_cursor(cursor: &str) -> Result<Span, Refusal> {
    let times = cursor.split_once('-').and_then(|(from, to)| {
        Some(Span {
            from: from.parse().ok()?,
            to: to.parse().ok()?,
        })
    });
    times
        .filter(|span| span.from < span.to)
        .ok_or_else(|| Refusal::bad_request("cursor: take it from `next` of the page before, unchanged"))
}
