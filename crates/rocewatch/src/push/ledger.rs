//! What a receiver was told has begun, until it is told that it is over: whoever hears of a beginning hears of an end, also
//! where the agent ends first.

use crate::event::{EventRecord, rfc3339};
use crate::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// The events of which one receiver knows the beginning alone. It is on disk where there is a directory, for the start
/// after a crash.
pub(super) struct Ledger {
    file: Option<PathBuf>,
    open: Vec<EventRecord>,
    disk_fails: bool,
}

/// What is on disk.
#[derive(Default, Serialize, Deserialize)]
struct Page {
    /// When they were last known to go on.
    #[serde(with = "rfc3339")]
    seen: i64,
    events: Vec<EventRecord>,
}

impl Ledger {
    /// The ledger in `file`, with what the last run left there, which is over: nobody saw how.
    pub(super) fn open(file: Option<PathBuf>) -> (Self, Vec<EventRecord>) {
        let page = file.as_deref().map(read).unwrap_or_default();
        let ledger = Self {
            file,
            open: page.events.clone(),
            disk_fails: false,
        };
        (ledger, ended(page))
    }

    /// The receiver is to hear of this beginning, or has heard of this end. `now` is in nanoseconds since 1970.
    pub(super) async fn note(&mut self, event: &EventRecord, now: i64) {
        self.open.retain(|open| open.id != event.id);
        if event.ended.is_none() {
            self.open.push(event.clone());
        }
        self.save(now).await;
    }

    /// What is open goes on now.
    pub(super) async fn renew(&mut self, now: i64) {
        if !self.open.is_empty() {
            self.save(now).await;
        }
    }

    /// What is open, ended `now`, since nobody will see how it ends.
    pub(super) fn ended(&self, now: i64) -> Vec<EventRecord> {
        ended(Page {
            seen: now,
            events: self.open.clone(),
        })
    }

    async fn save(&mut self, now: i64) {
        let Some(file) = self.file.clone() else { return };
        let page = Page {
            seen: now,
            events: self.open.clone(),
        };
        let write = move || {
            let text = serde_json::to_vec(&page).map_err(|error| error.to_string())?;
            files::write_whole(&file, &text).map_err(|error| format!("{}: {error}", file.display()))
        };
        let written = spawn_blocking(write)
            .await
            .unwrap_or_else(|error| Err(error.to_string()));
        if written.is_err() != self.disk_fails {
            self.disk_fails = written.is_err();
            if let Err(why) = written {
                tracing::warn!("{why}; after a crash what was open would never be told as closed");
            }
        }
    }
}

fn ended(page: Page) -> Vec<EventRecord> {
    let events = page.events.into_iter();
    events.map(|event| event.unseen_end(page.seen)).collect()
}

fn read(file: &Path) -> Page {
    if !files::is_file(file) {
        return Page::default();
    }
    let content = files::read(file).map_err(|error| error.to_string());
    let page =
        content.and_then(|content| serde_json::from_slice(&content).map_err(|error| error.to_string()));
    page.unwrap_or_else(|why| {
        tracing::warn!("{}: {why}; what it held is never told as closed", file.display());
        Page::default()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // damages a file

    use super::*;

    fn event(id: &str, ended: Option<i64>) -> EventRecord {
        let mut event: EventRecord = serde_json::from_value(serde_json::json!({
            "id": id, "event": "pfc_storm", "severity": "critical", "began": "2026-11-29T03:12:05Z", "evidence": {}
        }))
        .unwrap();
        event.ended = ended;
        event
    }

    #[tokio::test]
    async fn what_was_open_at_a_crash_is_over_since_it_was_last_seen() {
        let folder = tempfile::tempdir().unwrap();
        let file = || Some(folder.path().join("webhook.open"));
        let (mut ledger, left) = Ledger::open(file());
        assert_eq!(left, []);
        let began = event("a", None).began;
        ledger.note(&event("a", None), began + 1).await;
        ledger.note(&event("b", None), began + 2).await;
        ledger.note(&event("b", Some(began + 3)), began + 4).await;
        ledger.renew(began + 90).await;
        drop(ledger);
        for _ in 0..2 {
            let (_, left) = Ledger::open(file());
            assert_eq!(left.len(), 1);
            assert_eq!(
                (left[0].id.as_str(), left[0].ended, left[0].end_not_seen),
                ("a", Some(began + 90), true)
            );
        }
        // Until it has been told.
        let (mut ledger, left) = Ledger::open(file());
        ledger.note(&left[0], began + 200).await;
        assert_eq!(Ledger::open(file()).1, []);
    }

    #[tokio::test]
    async fn what_is_open_at_the_end_ends_with_it() {
        let (mut ledger, _) = Ledger::open(None);
        let began = event("a", None).began;
        ledger.note(&event("a", None), began).await;
        let ended = ledger.ended(began + 7);
        assert_eq!((ended[0].ended, ended[0].end_not_seen), (Some(began + 7), true));
    }

    #[test]
    fn a_damaged_page_is_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("webhook.open");
        std::fs::write(&file, b"{\"seen\":").unwrap();
        assert_eq!(Ledger::open(Some(file)).1, []);
    }
}
