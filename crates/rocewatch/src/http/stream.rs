//! `/api/v1/stream`: events as they begin and end, by server-sent events (HTML Living Standard, 9.2).
//!
//! A stream has a position in the log of events and no queue: a client that is slow lags behind, and one that lags too far
//! is told what it missed.

use super::events::Filter;
use super::refusal::Refusal;
use super::{asked, sending};
use crate::agent::{Agent, Change};
use crate::clock::Clock;
use axum::body::Bytes;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::Semaphore;

/// Streams at once.
const AT_ONCE: usize = 16;
/// A client hears something at least this often, and one that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Changes that are looked up at once.
const BATCH: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    kind: Option<String>,
    port: Option<String>,
    severity: Option<String>,
}

/// The places for streams.
pub(crate) struct Streams(Arc<Semaphore>);

impl Streams {
    /// All free.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

/// Numbers of changes begin anew with each start of the agent, which this names.
#[derive(Clone, Copy)]
struct Run(u128);

impl Run {
    fn of(clock: Clock) -> Self {
        let since = clock.started_at().duration_since(UNIX_EPOCH);
        Self(since.unwrap_or_default().as_millis())
    }

    fn id(self, number: u64) -> String {
        format!("{:x}-{number}", self.0)
    }

    /// The number in an id of this run.
    fn number(self, id: &str) -> Option<u64> {
        let (run, number) = id.split_once('-')?;
        (u128::from_str_radix(run, 16) == Ok(self.0))
            .then(|| number.parse().ok())
            .flatten()
    }
}

/// Answers a request with a stream that lasts until the client or the daemon ends.
pub(super) fn answer(
    agent: Arc<Agent>,
    streams: &Streams,
    clock: Clock,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let wanted: Parameters = asked::parameters(uri)?;
    let filter = Filter::parse(wanted.kind.as_deref(), wanted.port, wanted.severity.as_deref())?;
    let place = Arc::clone(&streams.0).try_acquire_owned().map_err(|_| {
        Refusal::unavailable(format!(
            "{AT_ONCE} clients follow the events already: end one of them, or ask /api/v1/events now and then"
        ))
    })?;
    let run = Run::of(clock);
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let newest = agent.world().events().newest();
    // A client of an earlier run has not heard of anything in this one.
    let heard = last.map_or(newest, |id| run.number(id).unwrap_or(0).min(newest));
    let body = sending::live(
        |out| follow(agent, filter, run, heard, out),
        piece(
            "dropped",
            None,
            r#"{"error":"this client did not take what it was sent: connect again, with Last-Event-ID"}"#,
        ),
        place,
    );
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Sends every change after the one of this number, until the client no longer takes them.
async fn follow(agent: Arc<Agent>, filter: Filter, run: Run, mut heard: u64, out: sending::Out) {
    let mut newest = agent.world().events().follow();
    // Browsers wait so long before they connect again.
    let mut more = out.send("retry: 5000\n\n".into()).await;
    while more {
        newest.borrow_and_update();
        let changes = changes(&agent, heard);
        if let Some(first) = changes.first().filter(|first| first.number > heard + 1) {
            let missed = first.number - heard - 1;
            let text = format!(
                r#"{{"error":"{missed} changes are no longer remembered: look them up in /api/v1/events","changes":{missed}}}"#
            );
            more = out
                .send(piece("missed", Some(run.id(first.number - 1)), &text))
                .await;
        }
        for change in &changes {
            heard = change.number;
            if more && filter.takes(&change.event) {
                more = out.send(told(run, change)).await;
            }
        }
        if more && changes.len() < BATCH {
            tokio::select! {
                // It ends with the agent, and then there is nothing more to tell.
                news = newest.changed() => more = news.is_ok(),
                () = out.unwanted() => more = false,
                () = tokio::time::sleep(KEEP_ALIVE) => more = out.send(": still here\n\n".into()).await,
            }
        }
    }
}

fn changes(agent: &Agent, heard: u64) -> Vec<Change> {
    agent.world().events().since(heard).take(BATCH).cloned().collect()
}

fn told(run: Run, change: &Change) -> Bytes {
    let name = if change.is_opening() { "opened" } else { "closed" };
    let data = serde_json::to_string(&*change.event).unwrap_or_default();
    piece(name, Some(run.id(change.number)), &data)
}

/// One event of the stream. JSON has no line breaks.
fn piece(name: &str, id: Option<String>, data: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {name}\n{id}data: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_another_run_is_none_of_this() {
        let run = Run(0x1234);
        assert_eq!(run.number(&run.id(77)), Some(77));
        assert_eq!(Run(0x1235).number(&run.id(77)), None);
        for id in ["", "77", "1234-", "1234-x", "x-77"] {
            assert_eq!(run.number(id), None, "{id}");
        }
    }
}
