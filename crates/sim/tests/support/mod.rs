//! A simulated server on a clock that is set by hand, and what each of its ports tells at an instant.

#![allow(dead_code)] // each test program uses a part

use catalog::{Index, Signal};
use model::{ABSENT, Host, Opened, Port, Read, Source, SourceKind};
use sim::{Nic, PortCount, Scenario, Setup, Simulator, StepClock};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const RDMA: Option<Index> = Some(Index::Priority(3));
pub(crate) const CNP: Option<Index> = Some(Index::Priority(6));
/// 400 Gb/s.
pub(crate) const LINE: f64 = 50e9;
/// Time for which one PFC frame holds a class at that.
pub(crate) const PFC_HOLD: f64 = 83.9e-6;

pub(crate) fn setup(scenario: Scenario, seed: u64, nic: Nic, ports: u8) -> Setup {
    let ports = PortCount::new(ports).expect("a possible number of ports");
    Setup {
        nic,
        ports,
        ..Setup::new(scenario, seed)
    }
}

pub(crate) struct Bench {
    pub(crate) clock: StepClock,
    pub(crate) host: Simulator,
    pub(crate) ports: Vec<Port>,
}

impl Bench {
    pub(crate) fn new(setup: Setup) -> Self {
        let clock = StepClock::default();
        let time = clock.clone();
        let host = Simulator::with(setup, move || time.now());
        let ports = host.ports().expect("the simulator lists its ports");
        Self { clock, host, ports }
    }

    /// Goes on to `seconds` without the long pauses that are played in longer steps.
    pub(crate) fn pass(&self, seconds: f64) {
        let end = Duration::from_secs_f64(seconds);
        loop {
            let left = end.saturating_sub(Duration::from_nanos(self.clock.now()));
            self.clock.advance(left.min(Duration::from_secs(5)));
            if left <= Duration::from_secs(5) {
                return;
            }
            self.host.ports().expect("the simulator lists its ports");
        }
    }

    pub(crate) fn open(&self, rail: usize, kind: SourceKind) -> Option<Box<dyn Source>> {
        match self.host.open(&self.ports[rail], kind) {
            Opened::Active(source) => Some(source),
            Opened::NotApplicable(_) => None,
            Opened::Failed(why) => panic!("{kind}: {why}"),
        }
    }

    pub(crate) fn reader(&self, rail: usize) -> Reader {
        let sources = SourceKind::ALL
            .into_iter()
            .filter_map(|kind| Some((kind, self.open(rail, kind)?)));
        Reader::new(sources.collect())
    }

    pub(crate) fn readers(&self) -> Vec<Reader> {
        (0..self.ports.len()).map(|rail| self.reader(rail)).collect()
    }
}

/// Everything that one port tells at an instant, but for the sources that could not be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Snapshot(pub(crate) BTreeMap<SourceKind, Vec<u64>>);

/// The sources of one port, and the column of each signal: the only one, or the only one that moves.
pub(crate) struct Reader {
    pub(crate) sources: BTreeMap<SourceKind, Box<dyn Source>>,
    columns: BTreeMap<(SourceKind, Signal, Option<Index>), usize>,
}

impl Reader {
    fn new(sources: BTreeMap<SourceKind, Box<dyn Source>>) -> Self {
        let mut columns = BTreeMap::new();
        for (kind, source) in &sources {
            for (i, column) in source.schema().columns.iter().enumerate() {
                let meaning = column.meaning.expect("the catalogue knows every column");
                columns
                    .entry((*kind, meaning.signal(), meaning.index))
                    .or_insert(i);
            }
        }
        Self { sources, columns }
    }

    pub(crate) fn read(&mut self) -> Snapshot {
        let read = |(kind, source): (&SourceKind, &mut Box<dyn Source>)| {
            let mut row = vec![0; source.schema().columns.len()];
            (source.read(&mut row) == Read::Row).then_some((*kind, row))
        };
        Snapshot(self.sources.iter_mut().filter_map(read).collect())
    }

    /// What a signal was by one source; `None` if the NIC does not have it there, or could not tell.
    pub(crate) fn of(
        &self,
        snapshot: &Snapshot,
        kind: SourceKind,
        signal: Signal,
        index: Option<Index>,
    ) -> Option<u64> {
        let column = self.columns.get(&(kind, signal, index))?;
        let value = snapshot.0.get(&kind)?[*column];
        (value != ABSENT).then_some(value)
    }

    /// What a signal was by the first source that has it.
    pub(crate) fn value(&self, snapshot: &Snapshot, signal: Signal, index: Option<Index>) -> Option<u64> {
        let mut kinds = SourceKind::ALL.into_iter();
        kinds.find_map(|kind| self.of(snapshot, kind, signal, index))
    }

    /// How much a counter has grown; `None` if it was not there at both times, or has fallen.
    pub(crate) fn grew(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        signal: Signal,
        index: Option<Index>,
    ) -> Option<f64> {
        let of = |snapshot| self.value(snapshot, signal, index);
        of(after)?.checked_sub(of(before)?).map(|grown| grown as f64)
    }
}
