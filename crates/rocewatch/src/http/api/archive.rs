//! The archive as `/api/v1/status` shows it.

use super::history::Damaged;
use crate::agent::News;
use crate::event::rfc3339;
use archive::State;
use serde::Serialize;

/// How the archive is doing.
#[derive(Serialize)]
pub(crate) struct Archive {
    /// `writing`, or `paused` while rows wait in memory for the disk.
    state: &'static str,
    /// Why it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// On disk, of rows, records and incidents.
    bytes: u64,
    /// Written since the agent started.
    rows: u64,
    /// Rows that found no room to wait in.
    lost_rows: u64,
    waiting_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none", with = "rfc3339::optional")]
    oldest: Option<i64>,
    /// Places that could not be read, at the start or since; the newest are named.
    damages: u64,
    damaged: Vec<Damaged>,
}

impl Archive {
    /// What there is to say.
    pub(super) fn of(news: News) -> Self {
        let status = news.status;
        let why = match status.state {
            State::Writing => None,
            State::Paused(why) => Some(why),
        };
        Self {
            state: if why.is_none() { "writing" } else { "paused" },
            why,
            bytes: status.row_bytes + status.record_bytes + status.pin_bytes,
            rows: status.rows,
            lost_rows: status.lost_rows,
            waiting_bytes: status.waiting_bytes,
            oldest: news.oldest,
            damages: news.damages,
            damaged: news.damaged.iter().map(Damaged::of).collect(),
        }
    }
}
