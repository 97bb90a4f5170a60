//! When something begins and ends: storms, marks that nobody heeds, links that flap.
//!
//! [`Detectors`] watch one port and [`NodeDetectors`] the ports of a node beside each other. Both are pure: they know what
//! [`PortSignals`] knows after its newest rows and what they remember, and times come with the rows. Everything is told by
//! change, nothing by totals; what cannot be seen begins nothing and ends nothing. [`EVENTS`] says what each kind means.

mod board;
mod congestion;
mod docs;
mod event;
mod host;
mod info;
mod latch;
mod link;
mod node;
mod pause;
mod thresholds;

pub use docs::events as docs;
pub use event::{Event, EventChange, EventKind, Severity};
pub use info::{EVENTS, EventInfo, info};
pub use latch::Rule;
pub use node::{NodeDetectors, RailTraffic, usual_speed};
pub use thresholds::Thresholds;

use crate::PortSignals;
use board::{Board, Subject};
use catalog::{Direction, SourceKind};
use latch::Sample;

const DIRECTIONS: [Direction; 2] = [Direction::Rx, Direction::Tx];

/// What a port's rows do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortFacts {
    /// Time since the node booted, in nanoseconds.
    pub uptime: Option<u64>,
    /// The speed that the port ought to have, in bits per second, by its history or by its peers. Without it the highest
    /// that the detectors have seen is usual.
    pub usual_speed: Option<f64>,
    /// The port is known to have had a carrier before. Of one that never had, nobody can say that it is down.
    pub known_up: bool,
    /// A source of the port that does not answer.
    pub stalled: Option<SourceKind>,
    /// The device is no longer there, or cannot be opened.
    pub gone: bool,
}

/// The detectors of one port.
#[derive(Debug)]
pub struct Detectors {
    thresholds: Thresholds,
    /// When the port was first looked at.
    started: Option<u64>,
    link: link::Link,
    usual_cnps: [congestion::Usual; 2],
    storms: pause::Storms,
    resets: host::Resets,
    board: Board,
}

/// One look at a port.
#[derive(Clone, Copy)]
struct Look<'a> {
    now: u64,
    port: &'a PortSignals,
    facts: &'a PortFacts,
    thresholds: &'a Thresholds,
    /// The port is watched for long enough.
    started: bool,
    /// The node is up for long enough.
    booted: bool,
    /// The link is up, and has been for long enough.
    link_rests: bool,
}

impl Detectors {
    /// Detectors that have seen nothing yet.
    #[must_use]
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            started: None,
            link: link::Link::default(),
            usual_cnps: Default::default(),
            storms: pause::Storms::default(),
            resets: host::Resets::default(),
            board: Board::default(),
        }
    }

    /// Looks at the port after new rows; gives what has begun and ended. `now` never goes back.
    pub fn look(
        &mut self,
        now: u64,
        port: &PortSignals,
        facts: &PortFacts,
    ) -> impl Iterator<Item = EventChange> + '_ {
        let started = *self.started.get_or_insert(now);
        let ready = now.saturating_sub(started) >= self.thresholds.startup_grace;
        let booted = facts
            .uptime
            .is_none_or(|uptime| uptime >= self.thresholds.boot_grace);
        self.link
            .look(now, port, facts, &self.thresholds, !ready || !booted);
        let look = Look {
            now,
            port,
            facts,
            thresholds: &self.thresholds,
            started: ready,
            booted,
            link_rests: self.link.rests(now, self.thresholds.link_grace),
        };
        let board = &mut self.board;
        self.link.detect(look, board);
        pause::detect(look, &mut self.storms, board);
        congestion::detect(look, &mut self.usual_cnps, board);
        host::detect(look, &mut self.resets, board);
        board.changes()
    }

    /// Judges by other thresholds from now on. What is open stays open until it closes by them.
    pub fn adjust(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }

    /// Ends what is open, since nobody looks at the port any more.
    pub fn close(&mut self, now: u64) -> impl Iterator<Item = EventChange> + '_ {
        self.board.close(now);
        self.board.changes()
    }
}

impl Look<'_> {
    /// Feeds a sample, if an event of the kind may open now or is open.
    fn feed<const N: usize>(
        self,
        board: &mut Board,
        subject: Subject,
        sample: Sample,
        evidence: impl FnOnce() -> [(&'static str, f64); N],
    ) {
        let sample = if self.may_open(subject.kind) || board.is_open(subject) {
            sample
        } else {
            Sample {
                value: None,
                ..sample
            }
        };
        board.feed(subject, self.thresholds.rule(subject.kind), sample, evidence);
    }

    /// Feeds a value of this instant, which is the evidence.
    fn feed_now(self, board: &mut Board, subject: Subject, value: Option<f64>, name: &'static str) {
        self.feed(board, subject, Sample::at(self.now, value), || {
            [(name, value.unwrap_or(0.0))]
        });
    }

    fn may_open(self, kind: EventKind) -> bool {
        self.started && (self.booted || !kind.waits_for_boot()) && (self.link_rests || !kind.waits_for_link())
    }
}
