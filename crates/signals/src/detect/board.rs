//! The events that are open or about to be.

use super::event::{Event, EventChange, EventKind};
use super::info;
use super::latch::{Edge, Latch, Rule, Sample};
use catalog::Direction;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Subject {
    pub(super) kind: EventKind,
    pub(super) priority: Option<u8>,
    pub(super) direction: Option<Direction>,
}

impl Subject {
    /// Something of the port as a whole.
    pub(super) fn port(kind: EventKind) -> Self {
        Self {
            kind,
            priority: None,
            direction: None,
        }
    }

    /// Something of one direction.
    pub(super) fn of(kind: EventKind, direction: Direction) -> Self {
        Self {
            direction: Some(direction),
            ..Self::port(kind)
        }
    }

    /// The same of one priority.
    pub(super) fn on(self, priority: u8) -> Self {
        Self {
            priority: Some(priority),
            ..self
        }
    }

    fn event(self, began: u64, ended: Option<u64>, evidence: Vec<(&'static str, f64)>) -> Event {
        Event {
            kind: self.kind,
            severity: info(self.kind).severity,
            priority: self.priority,
            direction: self.direction,
            began,
            ended,
            evidence,
        }
    }
}

/// Latches of what is not quiet, and what has changed and was not told yet. On a quiet port both are empty.
#[derive(Debug, Default)]
pub(super) struct Board {
    latches: Vec<(Subject, Latch)>,
    changes: Vec<EventChange>,
}

impl Board {
    fn position(&self, subject: Subject) -> Option<usize> {
        self.latches.iter().position(|(of, _)| *of == subject)
    }

    pub(super) fn is_open(&self, subject: Subject) -> bool {
        self.position(subject)
            .is_some_and(|at| self.latches[at].1.began().is_some())
    }

    /// Takes in a sample. `evidence` is asked for only if something changes.
    pub(super) fn feed<const N: usize>(
        &mut self,
        subject: Subject,
        rule: &Rule,
        sample: Sample,
        evidence: impl FnOnce() -> [(&'static str, f64); N],
    ) {
        let at = self.position(subject);
        if at.is_none() && sample.value.is_none_or(|value| value < rule.open_at) {
            return;
        }
        let mut latch = at.map_or(Latch::QUIET, |at| self.latches[at].1);
        let edge = latch.feed(rule, sample);
        self.keep(at, subject, latch);
        match edge {
            Some(Edge::Opened { began }) => {
                let event = subject.event(began, None, evidence().to_vec());
                self.changes.push(EventChange::Opened(event));
            }
            Some(Edge::Closed { began, ended }) => {
                let mut evidence = evidence().to_vec();
                evidence.push(("peak", latch.peak()));
                let event = subject.event(began, Some(ended), evidence);
                self.changes.push(EventChange::Closed(event));
            }
            None => {}
        }
    }

    fn keep(&mut self, at: Option<usize>, subject: Subject, latch: Latch) {
        match at {
            Some(at) if latch.is_quiet() => drop(self.latches.swap_remove(at)),
            Some(at) => self.latches[at].1 = latch,
            None => self.latches.push((subject, latch)),
        }
    }

    /// Ends all that is open: there is nobody left to watch it.
    pub(super) fn close(&mut self, now: u64) {
        for (subject, latch) in self.latches.drain(..) {
            if let Some(began) = latch.began() {
                let event = subject.event(began, Some(now), vec![("peak", latch.peak())]);
                self.changes.push(EventChange::Closed(event));
            }
        }
    }

    /// What has changed since the last time.
    pub(super) fn changes(&mut self) -> impl Iterator<Item = EventChange> + '_ {
        self.changes.drain(..)
    }
}
