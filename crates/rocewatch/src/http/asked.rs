//! What paths that look things up are asked alike: parameters, times, the size of a page.

use super::refusal::Refusal;
use crate::past::{Span, time};
use axum::extract;
use axum::http::Uri;
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The parameters of a request. One that is not known is refused: it was meant to change the answer.
pub(super) fn parameters<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refusal> {
    extract::Query::<T>::try_from_uri(uri)
        .map(|query| query.0)
        .map_err(|rejection| Refusal::bad_request(rejection.body_text()))
}

/// A time that a client wrote. `now` is the wall time in nanoseconds since 1970.
pub(super) fn time(name: &str, text: &str, now: i64) -> Result<i64, Refusal> {
    let now = time::zoned(now, &TimeZone::system());
    time::parse(text, &now)
        .map(|time| time::nanoseconds(&time))
        .map_err(|error| Refusal::bad_request(format!("{name}: {error}")))
}

/// The time between two that a client wrote, or left to what is usual.
pub(super) fn span(
    since: Option<&str>,
    usual_since: &str,
    until: Option<&str>,
    now: i64,
) -> Result<Span, Refusal> {
    let span = Span {
        from: time("since", since.unwrap_or(usual_since), now)?,
        to: time("until", until.unwrap_or("now"), now)?,
    };
    if span.from < span.to {
        Ok(span)
    } else {
        Err(Refusal::bad_request("since is not before until"))
    }
}

/// A duration that a client wrote.
pub(super) fn duration(name: &str, text: &str) -> Result<Duration, Refusal> {
    humantime::parse_duration(text).map_err(|error| {
        Refusal::bad_request(format!(
            "{name}: {text:?} is no time: {error}; write it as in 10s or 5m"
        ))
    })
}

/// How much a client wants on a page.
pub(super) fn limit(asked: Option<u64>, usual: u64, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let limit = asked.unwrap_or(usual);
    if range.contains(&limit) {
        Ok(limit)
    } else {
        Err(Refusal::bad_request(format!(
            "limit is {} to {}",
            range.start(),
            range.end()
        )))
    }
}
