//! A simulated server, read at the default cadence, and what its detectors tell.

use catalog::{Direction, Kind};
use model::{ABSENT, Host, Opened, Port, Read, Source, SourceKind};
use ring::Window;
use signals::detect::{
    Detectors, Event, EventChange, EventKind, NodeDetectors, PortFacts, RailTraffic, Thresholds,
};
use signals::{Options, PortSignals};
use sim::{Nic, PortCount, Scenario, Setup, Simulator, StepClock};
use std::time::Duration;

const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
/// What the agent does by default.
const TICK: Duration = Duration::from_millis(100);
const CADENCE: [(SourceKind, u64); 6] = [
    (SourceKind::HwCounters, 100 * MS),
    (SourceKind::Ethtool, 200 * MS),
    (SourceKind::PortCounters, SECOND),
    (SourceKind::Link, SECOND),
    (SourceKind::Settings, 30 * SECOND),
    (SourceKind::Dcb, 30 * SECOND),
];
/// Rows older than three intervals are no longer shown.
const FRESH: u64 = 3;
/// A source that fails for so long does not answer.
const STALL: u64 = 5 * SECOND;

/// A change, of which rail (`None` for the node), and when it was known.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) rail: Option<usize>,
    pub(crate) at: u64,
    pub(crate) change: EventChange,
}

pub(crate) struct Server {
    clock: StepClock,
    rails: Vec<Rail>,
    node: NodeDetectors,
    pub(crate) told: Vec<Told>,
}

struct Rail {
    host: std::rc::Rc<Simulator>,
    port: Port,
    feeds: Vec<Feed>,
    signals: PortSignals,
    detectors: Detectors,
    facts: PortFacts,
    up: Option<u64>,
}

struct Feed {
    kind: SourceKind,
    interval: u64,
    source: Option<Box<dyn Source>>,
    last_row: u64,
    /// What is added to each counter, since a server of another scenario went before.
    offsets: Vec<u64>,
    row: Vec<u64>,
}

pub(crate) fn setup(scenario: Scenario, nic: Nic) -> Setup {
    Setup {
        nic,
        ports: PortCount::new(8).expect("a possible number"),
        ..Setup::new(scenario, 7)
    }
}

impl Server {
    pub(crate) fn new(setup: Setup, facts: PortFacts) -> Self {
        let clock = StepClock::default();
        let host = simulator(setup, &clock);
        let ports = host.ports().expect("the simulator lists its ports");
        let rails = ports.into_iter().map(|port| Rail::new(&host, port, facts));
        Self {
            rails: rails.collect(),
            clock,
            node: NodeDetectors::new(Thresholds::default()),
            told: Vec::new(),
        }
    }

    /// From now on another scenario happens to the same server, whose counters go on.
    pub(crate) fn turn_to(&mut self, setup: Setup) {
        let host = simulator(setup, &self.clock);
        for rail in &mut self.rails {
            rail.host = std::rc::Rc::clone(&host);
            rail.feeds
                .iter_mut()
                .for_each(|feed| feed.turn_to(&host, &rail.port));
        }
    }

    /// Plays for so many seconds.
    pub(crate) fn play(&mut self, seconds: u64) {
        self.play_by(seconds, TICK);
    }

    pub(crate) fn play_by(&mut self, seconds: u64, tick: Duration) {
        let end = self.clock.now() + seconds * SECOND;
        while self.clock.now() < end {
            self.clock.advance(tick);
            let now = self.clock.now();
            for (at, rail) in self.rails.iter_mut().enumerate() {
                rail.read(now);
                let changes = rail.detectors.look(now, &rail.signals, &rail.facts);
                self.told.extend(changes.map(|change| Told {
                    rail: Some(at),
                    at: now,
                    change,
                }));
            }
            let traffic = self.rails.iter().map(|rail| RailTraffic::of(&rail.signals));
            let changes = self.node.look(now, traffic);
            self.told.extend(changes.map(|change| Told {
                rail: None,
                at: now,
                change,
            }));
        }
    }

    /// What was opened: rail and kind, each once.
    pub(crate) fn kinds(&self) -> Vec<(Option<usize>, EventKind, Option<Direction>)> {
        let mut kinds: Vec<_> = self
            .opened()
            .map(|(told, event)| (told.rail, event.kind, event.direction))
            .collect();
        kinds.sort_by_key(|(rail, kind, direction)| (*rail, *kind, direction.map(Direction::as_str)));
        kinds.dedup();
        kinds
    }

    pub(crate) fn opened(&self) -> impl Iterator<Item = (&Told, &Event)> {
        self.told.iter().filter_map(|told| match &told.change {
            EventChange::Opened(event) => Some((told, event)),
            EventChange::Closed(_) => None,
        })
    }

    pub(crate) fn closed(&self) -> impl Iterator<Item = (&Told, &Event)> {
        self.told.iter().filter_map(|told| match &told.change {
            EventChange::Closed(event) => Some((told, event)),
            EventChange::Opened(_) => None,
        })
    }
}

fn simulator(setup: Setup, clock: &StepClock) -> std::rc::Rc<Simulator> {
    let time = clock.clone();
    std::rc::Rc::new(Simulator::with(setup, move || time.now()))
}

impl Rail {
    fn new(host: &std::rc::Rc<Simulator>, port: Port, facts: PortFacts) -> Self {
        let mut signals = PortSignals::new(Options { window: SECOND });
        let feeds = CADENCE.into_iter().filter_map(|(kind, interval)| {
            let Opened::Active(source) = host.open(&port, kind) else {
                return None;
            };
            signals.open(std::sync::Arc::clone(source.schema()));
            let columns = source.schema().columns.len();
            Some(Feed {
                kind,
                interval,
                source: Some(source),
                last_row: 0,
                offsets: vec![0; columns],
                row: vec![0; columns],
            })
        });
        let feeds = feeds.collect();
        signals.settle();
        Self {
            host: std::rc::Rc::clone(host),
            port,
            feeds,
            signals,
            detectors: Detectors::new(Thresholds::default()),
            facts,
            up: None,
        }
    }

    fn read(&mut self, now: u64) {
        let up = self.signals.reading(catalog::Signal::LinkUp, None);
        let changed = up != self.up;
        self.up = up;
        self.facts.stalled = None;
        for feed in &mut self.feeds {
            // Facts are read on every event that may change them, too.
            let fact = matches!(feed.kind, SourceKind::Settings | SourceKind::Dcb);
            if now.is_multiple_of(feed.interval) || (fact && (changed || now == 100 * MS)) {
                feed.read(now, &self.host, &self.port, &mut self.signals);
            }
            let age = now - feed.last_row;
            self.signals
                .set_fresh(feed.kind, age <= FRESH * feed.interval + 50 * MS);
            if age > feed.interval + STALL {
                self.facts.stalled = Some(feed.kind);
            }
        }
    }
}

impl Feed {
    fn read(&mut self, now: u64, host: &Simulator, port: &Port, signals: &mut PortSignals) {
        if self.source.is_none()
            && let Opened::Active(source) = host.open(port, self.kind)
        {
            signals.open(std::sync::Arc::clone(source.schema()));
            self.source = Some(source);
        }
        let Some(source) = &mut self.source else { return };
        match source.read(&mut self.row) {
            Read::Row => {
                for (value, offset) in self.row.iter_mut().zip(&self.offsets) {
                    if *value != ABSENT {
                        *value = value.wrapping_add(*offset);
                    }
                }
                let window = Window {
                    began: now,
                    ended: now,
                };
                signals.row(self.kind, window, &self.row);
                self.last_row = now;
            }
            // A source that was of a device before its reset is opened anew.
            _ => self.source = None,
        }
    }

    fn turn_to(&mut self, host: &Simulator, port: &Port) {
        let Opened::Active(mut source) = host.open(port, self.kind) else {
            panic!("the other scenario has {}", self.kind);
        };
        let mut first = vec![0; self.row.len()];
        assert_eq!(source.read(&mut first), Read::Row);
        for (at, column) in source.schema().columns.iter().enumerate() {
            let counts = column
                .meaning
                .is_some_and(|meaning| meaning.entry.kind == Kind::Counter);
            if counts && first[at] != ABSENT && self.row[at] != ABSENT {
                self.offsets[at] = self.row[at].wrapping_sub(first[at]);
            }
        }
        self.source = Some(source);
    }
}
