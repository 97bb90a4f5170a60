//! Brings what waits to its receiver: in order, again and again until it is taken, and never twice at once.

use super::client::Client;
use super::counters::Counters;
use super::spool::{Oldest, Record, Spool};
use crate::clock::Clock;
use bytes::Bytes;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// After the first failure; doubled with each further one.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A body with the headers that go with it.
pub(super) type Headers = &'static [(&'static str, &'static str)];

/// What is sent to a receiver.
pub(super) trait Mail: Send + Sync + 'static {
    /// Headers that say what a body is.
    fn headers(&self) -> Headers;

    /// The body that brings a record, made when it is sent.
    fn body(&self, record: &Record) -> Bytes;

    /// How often the receiver is told what goes on, whether there is news or not.
    fn reminds_every(&self) -> Option<Duration> {
        None
    }

    /// What it is told then; `None` if nothing goes on.
    fn reminder(&self) -> Option<Bytes> {
        None
    }
}

/// One receiver, what waits for it, and how to put it.
pub(super) struct Courier<M> {
    pub(super) client: Client,
    pub(super) spool: Spool,
    pub(super) mail: M,
    pub(super) counters: Counters,
    pub(super) clock: Clock,
}

/// What became of an attempt.
enum Outcome {
    Taken,
    /// It never will be.
    Refused(String),
    Failed {
        why: String,
        retry_after: Option<Duration>,
    },
}

impl<M: Mail> Courier<M> {
    /// Works until the process ends.
    pub(super) async fn run(self) {
        let mut failing = false;
        let mut due = self.next_reminder();
        loop {
            let oldest = tokio::select! {
                oldest = self.spool.oldest() => oldest,
                () = sleep_until(due) => {
                    self.remind().await;
                    due = self.next_reminder();
                    continue;
                }
            };
            match oldest {
                Oldest::Damaged(units) => self.counters.dropped("damaged", units),
                Oldest::Record(number, record) => {
                    self.deliver(&record, &mut failing).await;
                    self.spool.remove(number).await;
                }
            }
            self.counters.waiting(self.spool.waiting());
        }
    }

    fn next_reminder(&self) -> Instant {
        // Whoever is not reminded is looked after once a day.
        Instant::now() + self.mail.reminds_every().unwrap_or(Duration::from_secs(86_400))
    }

    async fn remind(&self) {
        let Some(body) = self.mail.reminder() else { return };
        if let Outcome::Failed { why, .. } | Outcome::Refused(why) = self.attempt(body).await {
            tracing::debug!(to = self.counters.to(), %why, "a reminder was not taken");
        }
    }

    /// Until it is taken or refused.
    async fn deliver(&self, record: &Record, failing: &mut bool) {
        let mut pause = SHORTEST_PAUSE;
        let to = self.counters.to();
        loop {
            self.counters.waiting(self.spool.waiting());
            match self.attempt(self.mail.body(record)).await {
                Outcome::Taken => {
                    self.counters.sent(record);
                    if std::mem::take(failing) {
                        tracing::info!("{to} takes again what it is sent");
                    }
                    return;
                }
                Outcome::Refused(why) => {
                    self.counters.dropped("refused", record.units);
                    tracing::warn!("{to} refuses what it is sent, which is dropped: {why}");
                    return;
                }
                Outcome::Failed { why, retry_after } => {
                    self.counters.failed();
                    if !std::mem::replace(failing, true) {
                        tracing::warn!("{to} does not take what it is sent, which waits: {why}");
                    }
                    sleep(retry_after.unwrap_or_else(|| self.scattered(pause))).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn attempt(&self, body: Bytes) -> Outcome {
        match self.client.post(self.mail.headers(), body).await {
            Err(why) => Outcome::Failed {
                why,
                retry_after: None,
            },
            Ok(answer) => {
                let why = format!("status {} {}", answer.status, answer.text);
                match answer.status {
                    200..=299 => Outcome::Taken,
                    429 | 500..=599 => Outcome::Failed {
                        why,
                        retry_after: answer.retry_after,
                    },
                    _ => Outcome::Refused(why),
                }
            }
        }
    }

    /// Up to a half longer, so that a cluster's nodes do not all come back at once. The clock's last digits are as good
    /// as chance.
    fn scattered(&self, pause: Duration) -> Duration {
        let most = u64::try_from(pause.as_nanos() / 2).unwrap_or(u64::MAX).max(1);
        pause + Duration::from_nanos(self.clock.now() % most)
    }
}
