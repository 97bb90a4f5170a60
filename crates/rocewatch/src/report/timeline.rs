//! Events as lines in the order in which they began and ended.

use crate::event::EventRecord;

/// Every change, with its time in nanoseconds since 1970.
pub(crate) fn changes(events: &[EventRecord]) -> Vec<(i64, String)> {
    let mut changes = Vec::new();
    for event in events {
        let what = words(event);
        match event.ended {
            None => changes.push((event.began, format!("{what}: begins, and goes on"))),
            Some(ended) => {
                let lasted = seconds(event.began, ended);
                changes.push((event.began, format!("{what}: begins")));
                changes.push((ended, format!("{what}: ends after {lasted}")));
            }
        }
    }
    changes.sort();
    changes
}

/// Of what the event is, and what it is.
pub(super) fn words(event: &EventRecord) -> String {
    let words = format!(
        "{:<14} {} {}",
        event.subject.name(),
        event.title(),
        event.detail()
    );
    words.trim_end().to_owned()
}

/// How long it is from one time to another.
pub(super) fn seconds(from: i64, to: i64) -> String {
    format!("{:.3} s", (to - from) as f64 / 1e9)
}

/// The same with a sign.
pub(crate) fn after(began: i64, at: i64) -> String {
    format!("{:+.3} s", (at - began) as f64 / 1e9)
}
