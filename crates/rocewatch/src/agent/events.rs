//! What has happened lately, for whoever wants to know: metrics, archive, API, stream, notifications.

use crate::event::{EventRecord, Subject};
use crate::incident::BEFORE;
use signals::detect::{EventChange, EventKind};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// Changes that are remembered; older ones are in the archive.
const REMEMBERED: usize = 1024;

/// The events of a node since the agent started.
pub(crate) struct EventLog {
    changes: VecDeque<Change>,
    /// Number of the next change.
    next: u64,
    open: Vec<Arc<EventRecord>>,
    tallies: Vec<Tally>,
    newest: watch::Sender<u64>,
}

/// An event as it was after it opened or closed.
#[derive(Clone)]
pub(crate) struct Change {
    /// Counts up from 1 without a gap.
    pub(crate) number: u64,
    pub(crate) event: Arc<EventRecord>,
}

impl Change {
    /// True if the event has begun, false if it has ended.
    pub(crate) fn is_opening(&self) -> bool {
        self.event.ended.is_none()
    }
}

/// How often events of one kind opened on one subject, and whether one is open.
pub(crate) struct Tally {
    pub(crate) subject: Subject,
    pub(crate) kind: EventKind,
    pub(crate) severity: &'static str,
    pub(crate) direction: &'static str,
    pub(crate) priority: Option<u8>,
    pub(crate) opened: u64,
    pub(crate) open: bool,
}

impl EventLog {
    pub(super) fn new() -> Self {
        Self {
            changes: VecDeque::new(),
            next: 1,
            open: Vec::new(),
            tallies: Vec::new(),
            newest: watch::Sender::new(0),
        }
    }

    /// Changes after the one of this number, as far as they are remembered, oldest first.
    pub(crate) fn since(&self, number: u64) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.number > number)
    }

    /// Number of the newest change; 0 before the first.
    pub(crate) fn newest(&self) -> u64 {
        self.next - 1
    }

    /// Wakes up at each change, with its number.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// What goes on now.
    pub(crate) fn open(&self) -> &[Arc<EventRecord>] {
        &self.open
    }

    /// Events that went on in the minute before `wall`, nanoseconds since 1970, and have ended.
    pub(super) fn lately(&self, wall: i64) -> Vec<EventRecord> {
        let begin = wall.saturating_sub_unsigned(BEFORE);
        let events = self.changes.iter().map(|change| &*change.event);
        let ended = events.filter(|event| event.ended.is_some_and(|ended| ended >= begin));
        ended.cloned().collect()
    }

    /// Counts, one of each kind, subject, direction and priority that there was.
    pub(crate) fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// Takes in a change, writes it into the log, and wakes those who wait. True if there is a tally more.
    pub(super) fn take(
        &mut self,
        subject: &Subject,
        change: &EventChange,
        wall: impl Fn(u64) -> i64,
    ) -> bool {
        let before = self.tallies.len();
        let event = change.event();
        let position = self.open.iter().position(|open| open.is_about(event, subject));
        let record = match (change, position) {
            (EventChange::Opened(_), _) => {
                let record = Arc::new(EventRecord::opened(subject.clone(), event, wall));
                self.open.push(Arc::clone(&record));
                record
            }
            (EventChange::Closed(_), Some(at)) => Arc::new(self.open.swap_remove(at).closed(event, wall)),
            (EventChange::Closed(_), None) => return false,
        };
        self.count(subject, change);
        log(&record);
        if self.changes.len() == REMEMBERED {
            self.changes.pop_front();
        }
        self.changes.push_back(Change {
            number: self.next,
            event: record,
        });
        self.newest.send_replace(self.next);
        self.next += 1;
        self.tallies.len() > before
    }

    fn count(&mut self, subject: &Subject, change: &EventChange) {
        let event = change.event();
        let direction = event.direction.map_or("", catalog::Direction::as_str);
        let found = self.tallies.iter().position(|tally| {
            tally.kind == event.kind
                && tally.priority == event.priority
                && tally.direction == direction
                && tally.subject == *subject
        });
        let at = found.unwrap_or_else(|| {
            self.tallies.push(Tally {
                subject: subject.clone(),
                kind: event.kind,
                severity: event.severity.as_str(),
                direction,
                priority: event.priority,
                opened: 0,
                open: false,
            });
            self.tallies.len() - 1
        });
        let tally = &mut self.tallies[at];
        tally.open = matches!(change, EventChange::Opened(_));
        tally.opened += u64::from(tally.open);
    }

    /// Counts of a port that is no longer watched are shown no longer. True if there were any.
    pub(super) fn forget(&mut self, subject: &Subject) -> bool {
        let before = self.tallies.len();
        self.tallies
            .retain(|tally| tally.subject.port_id != subject.port_id);
        self.tallies.len() < before
    }
}

/// Fields are for journald and JSON, the sentence for people.
fn log(event: &EventRecord) {
    let subject = &event.subject;
    let (device, port, netdev) = (subject.device.as_deref(), subject.port, subject.netdev.as_deref());
    let (direction, priority) = (event.direction.as_deref(), event.priority);
    let (kind, severity, title) = (&event.event, &event.severity, event.title());
    match event.ended {
        None if severity == "info" => {
            tracing::info!(event = %kind, %severity, device, port, netdev, direction, priority, id = %event.id, evidence = ?event.evidence, "{title}: begun");
        }
        None => {
            tracing::warn!(event = %kind, %severity, device, port, netdev, direction, priority, id = %event.id, evidence = ?event.evidence, "{title}: begun");
        }
        Some(ended) => {
            let lasted = std::time::Duration::from_millis(ended.abs_diff(event.began) / 1_000_000);
            tracing::info!(event = %kind, %severity, device, port, netdev, direction, priority, id = %event.id, evidence = ?event.evidence_at_end, "{title}: ended after {lasted:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signals::detect::{Event, Severity};

    fn change(open: bool, began: u64) -> EventChange {
        let event = Event {
            kind: EventKind::LinkDown,
            severity: Severity::Critical,
            priority: None,
            direction: None,
            began,
            ended: (!open).then_some(began + 5),
            evidence: Vec::new(),
        };
        if open {
            EventChange::Opened(event)
        } else {
            EventChange::Closed(event)
        }
    }

    fn take(log: &mut EventLog, open: bool, began: u64) -> bool {
        let subject = Subject {
            device: Some("mlx5_0".to_owned()),
            ..Subject::default()
        };
        log.take(&subject, &change(open, began), |row| row.cast_signed())
    }

    #[test]
    fn an_event_opens_closes_and_is_counted() {
        let mut log = EventLog::new();
        let followed = log.follow();
        assert!(take(&mut log, true, 10));
        assert_eq!((log.open().len(), log.newest(), *followed.borrow()), (1, 1, 1));
        assert!(!take(&mut log, false, 10), "the tally is there already");
        assert!(log.open().is_empty());
        take(&mut log, true, 90);
        let tally = &log.tallies()[0];
        assert_eq!((log.tallies().len(), tally.opened, tally.open), (1, 2, true));
        let numbers: Vec<_> = log
            .since(1)
            .map(|change| (change.number, change.is_opening()))
            .collect();
        assert_eq!(numbers, [(2, false), (3, true)]);
        assert_eq!(log.since(1).next().unwrap().event.began, 10);
    }

    #[test]
    fn an_end_without_a_begin_is_none() {
        let mut log = EventLog::new();
        assert!(!take(&mut log, false, 10));
        assert_eq!(log.newest(), 0);
    }

    #[test]
    fn the_log_remembers_the_newest_and_counts_all() {
        let mut log = EventLog::new();
        for began in 0..600 {
            take(&mut log, true, began);
            take(&mut log, false, began);
        }
        assert_eq!(log.since(0).next().unwrap().number, 1200 - 1024 + 1);
        assert_eq!(log.tallies()[0].opened, 600);
    }
}
