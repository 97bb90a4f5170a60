//! What the detectors find while the command runs.

use crate::agent::EventLog;
use crate::event::EventRecord;

/// Events that are told; further ones are counted.
const MOST: usize = 1000;

/// The events of a run.
#[derive(Debug)]
pub(super) struct Happened {
    /// Number of the newest change that was taken in.
    newest: u64,
    /// In the order in which they were noticed.
    pub(super) events: Vec<EventRecord>,
    pub(super) more: u64,
}

impl Happened {
    /// Begins with what goes on now.
    pub(super) fn begin(log: &EventLog) -> Self {
        Self {
            newest: log.newest(),
            events: log.open().iter().map(|event| EventRecord::clone(event)).collect(),
            more: 0,
        }
    }

    /// Takes in what has begun or ended since the last time.
    pub(super) fn look(&mut self, log: &EventLog) {
        for change in log.since(self.newest) {
            let event = EventRecord::clone(&change.event);
            match self.events.iter().position(|known| known.id == event.id) {
                Some(at) => self.events[at] = event,
                None if self.events.len() < MOST => self.events.push(event),
                None => self.more += u64::from(change.is_opening()),
            }
        }
        self.newest = log.newest();
    }
}
