//! Hands every change of the event log to each receiver that is told of events.

use super::Mailbox;
use super::ledger::Ledger;
use super::notify;
use crate::clock::Clock;
use crate::event::EventRecord;
use crate::http::App;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// How often it is written down that what is open goes on: an end that a crash hid is known to be no earlier than so.
const RENEWAL: Duration = Duration::from_secs(10);

/// Who is told.
pub(super) struct Listener {
    pub(super) mailbox: Mailbox,
    /// What it is owed the end of, if it does not find an end by itself.
    pub(super) ledger: Option<Ledger>,
    /// What is to be told first: it was open when the last run ended.
    pub(super) left: Vec<EventRecord>,
}

impl Listener {
    async fn tell(&mut self, event: &EventRecord, now: i64) {
        // A crash in between costs a word too many, never one too few.
        if event.ended.is_none() {
            self.note(event, now).await;
        }
        self.mailbox.put(notify::record(event)).await;
        if event.ended.is_some() {
            self.note(event, now).await;
        }
    }

    async fn note(&mut self, event: &EventRecord, now: i64) {
        if let Some(ledger) = &mut self.ledger {
            ledger.note(event, now).await;
        }
    }

    async fn tell_what_was_left(&mut self, now: i64) {
        for event in std::mem::take(&mut self.left) {
            self.tell(&event, now).await;
        }
    }

    async fn tell_of_the_end(&mut self, now: i64) {
        let ended = self.ledger.as_ref().map(|ledger| ledger.ended(now));
        for event in ended.unwrap_or_default() {
            self.tell(&event, now).await;
        }
    }
}

/// The events, and who is told.
pub(super) struct Herald {
    pub(super) app: Arc<App>,
    pub(super) clock: Clock,
    pub(super) listeners: Vec<Listener>,
}

impl Herald {
    /// Works until `end` comes, and has then told that nobody will see the end of what goes on.
    pub(super) async fn run(mut self, mut end: oneshot::Receiver<()>) {
        for listener in &mut self.listeners {
            listener.tell_what_was_left(self.clock.wall()).await;
        }
        let mut newest = self.app.agent.world().events().follow();
        let mut known = 0;
        loop {
            newest.borrow_and_update();
            known = self.tell_changes(known).await;
            tokio::select! {
                // The log is there as long as the agent.
                _ = newest.changed() => {}
                () = sleep(RENEWAL) => self.renew().await,
                _ = &mut end => break,
            }
        }
        self.tell_changes(known).await;
        for listener in &mut self.listeners {
            listener.tell_of_the_end(self.clock.wall()).await;
        }
    }

    /// Tells what has changed after the change of this number; gives the number of the newest.
    async fn tell_changes(&mut self, mut known: u64) -> u64 {
        let changes: Vec<_> = self.app.agent.world().events().since(known).cloned().collect();
        for change in changes {
            let missed = change.number - known - 1;
            known = change.number;
            for listener in &mut self.listeners {
                listener.mailbox.counters.dropped("missed", missed);
                listener.tell(&change.event, self.clock.wall()).await;
            }
        }
        known
    }

    async fn renew(&mut self) {
        for ledger in self
            .listeners
            .iter_mut()
            .filter_map(|listener| listener.ledger.as_mut())
        {
            ledger.renew(self.clock.wall()).await;
        }
    }
}
