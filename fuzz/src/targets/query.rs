//! Query strings of the paths that look things up: the first byte chooses the path, the rest are its parameters.

use crate::http::{events, history, incidents};
use axum::http::Uri;

/// 2026-11-29 00:00 UTC.
const NOW: i64 = 1_795_910_400_000_000_000;

/// Any query is understood or refused; what is understood has a time, a step and a size within their limits.
pub fn check(input: &[u8]) {
    let Some((path, query)) = input.split_first() else {
        return;
    };
    let Ok(query) = std::str::from_utf8(query) else {
        return;
    };
    let Ok(uri) = format!("/?{query}").parse::<Uri>() else {
        return;
    };
    let (span, limit, most) = match path % 3 {
        0 => {
            let Ok(question) = history::Question::parse(&uri, NOW) else {
                return;
            };
            assert!(question.step.get() >= 1_000_000_000);
            (question.span, question.limit, 100_000)
        }
        1 => {
            let Ok(question) = events::Question::parse(&uri, NOW) else {
                return;
            };
            (question.span, question.limit, 1_000)
        }
        _ => {
            let Ok(question) = incidents::Question::parse(&uri, NOW) else {
                return;
            };
            (question.span, question.limit, 100)
        }
    };
    assert!(span.from < span.to, "{span:?}");
    assert!((1..=most).contains(&limit));
}
