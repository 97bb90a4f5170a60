//! A port whose rows are made by hand.

use model::{DeviceId, PortId, Schema, SourceKind};
use ring::Window;
use signals::detect::{Detectors, EventChange, EventKind, PortFacts, Thresholds};
use signals::{Options, PortSignals};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
pub(crate) const TICK: u64 = 200 * MS;

/// Sources with the counters of each; no name is in two of them.
pub(crate) type Sources = &'static [(SourceKind, &'static [&'static str])];

/// A port of `mlx5_core`.
const SOURCES: Sources = &[
    (
        SourceKind::Ethtool,
        &[
            "rx_prio0_pause",
            "rx_prio3_pause",
            "rx_prio3_pause_duration",
            "tx_prio3_pause",
            "tx_prio3_pause_duration",
            "rx_prio0_discards",
            "rx_prio3_discards",
            "rx_pause_ctrl_phy",
            "tx_pause_storm_warning_events",
            "rx_vport_rdma_unicast_packets",
            "tx_vport_rdma_unicast_packets",
            "rx_bytes_phy",
            "rx_packets_phy",
            "tx_bytes_phy",
            "tx_packets_phy",
        ],
    ),
    (
        SourceKind::HwCounters,
        &[
            "np_ecn_marked_roce_packets",
            "np_cnp_sent",
            "rp_cnp_handled",
            "rp_cnp_ignored",
            "out_of_sequence",
        ],
    ),
    (SourceKind::Link, &["carrier", "carrier_down_count"]),
    (SourceKind::Settings, &["speed"]),
    (SourceKind::Dcb, &["pfc_enabled"]),
];

/// A pause of all of the time, in microseconds a second.
pub(crate) const HELD: u64 = 1_000_000;

pub(crate) struct Rows {
    driver: &'static str,
    sources: Sources,
    pub(crate) now: u64,
    pub(crate) values: BTreeMap<&'static str, u64>,
    pub(crate) signals: PortSignals,
    pub(crate) detectors: Detectors,
    pub(crate) facts: PortFacts,
    pub(crate) told: Vec<EventChange>,
}

impl Rows {
    /// A port that is up at 400 Gbit/s, has PFC on priority 3, and counts 132 million of everything since its boot.
    pub(crate) fn new(thresholds: &Thresholds) -> Self {
        Self::of("mlx5_core", SOURCES, thresholds)
    }

    /// The same of a driver with other counters.
    pub(crate) fn of(driver: &'static str, sources: Sources, thresholds: &Thresholds) -> Self {
        let mut rows = Self {
            driver,
            sources,
            now: 0,
            values: BTreeMap::new(),
            signals: PortSignals::new(Options { window: SECOND }),
            detectors: Detectors::new(*thresholds),
            facts: PortFacts::default(),
            told: Vec::new(),
        };
        rows.open(sources);
        rows.signals.settle();
        for (fact, value) in [("carrier", 1), ("speed", 400_000), ("pfc_enabled", 1 << 3)] {
            rows.values.entry(fact).and_modify(|found| *found = value);
        }
        rows
    }

    /// The sources are opened, for the first time or anew. What was there before goes on where it was.
    pub(crate) fn open(&mut self, sources: Sources) {
        self.sources = sources;
        for (source, names) in sources {
            let port = PortId {
                device: DeviceId::pci("0000:1a:00.0"),
                number: 1,
            };
            let schema = Schema::new(port, self.driver, *source, names.iter().copied());
            self.signals.open(Arc::new(schema));
            for name in *names {
                self.values.entry(name).or_insert(132_000_000);
            }
        }
    }

    /// The same sources are opened again.
    pub(crate) fn reopen(&mut self) {
        self.open(self.sources);
    }

    /// True if a source has this counter now.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.sources.iter().any(|(_, names)| names.contains(&name))
    }

    /// No source can be read any more.
    pub(crate) fn close(&mut self) {
        for (source, _) in self.sources {
            self.signals.close(*source);
        }
    }

    /// One that has been watched for long enough.
    pub(crate) fn rested() -> Self {
        let mut rows = Self::new(&Thresholds::default());
        rows.play(6_000, &[]);
        rows
    }

    pub(crate) fn set(&mut self, name: &'static str, value: u64) {
        assert!(self.values.insert(name, value).is_some(), "there is {name}");
    }

    /// Each counter grows by so much.
    pub(crate) fn add(&mut self, growth: &[(&'static str, u64)]) {
        for (name, amount) in growth {
            *self.values.get_mut(name).expect("a counter") += amount;
        }
    }

    /// Goes on for so long, with a row of each source in 200 ms, while counters grow by so much a second.
    pub(crate) fn play(&mut self, ms: u64, growth: &[(&'static str, u64)]) {
        for _ in 0..ms * MS / TICK {
            self.step(TICK, growth);
        }
    }

    /// Goes on for so many nanoseconds, at whose end there is a row of each source.
    pub(crate) fn step(&mut self, time: u64, growth: &[(&'static str, u64)]) {
        self.now += time;
        for (name, per_second) in growth {
            self.add(&[(*name, per_second * (time / MS) / 1_000)]);
        }
        for (source, names) in self.sources {
            let row: Vec<u64> = names.iter().map(|name| self.values[name]).collect();
            let window = Window {
                began: self.now,
                ended: self.now,
            };
            self.signals.row(*source, window, &row);
        }
        self.look();
    }

    pub(crate) fn look(&mut self) {
        let changes = self.detectors.look(self.now, &self.signals, &self.facts);
        self.told.extend(changes);
    }

    /// Kinds of what was opened since the last time, and of what was closed.
    pub(crate) fn told(&mut self) -> (Vec<EventKind>, Vec<EventKind>) {
        let (opened, closed): (Vec<_>, Vec<_>) = self
            .told
            .drain(..)
            .partition(|change| matches!(change, EventChange::Opened(_)));
        let kinds = |changes: Vec<EventChange>| changes.iter().map(|change| change.event().kind).collect();
        (kinds(opened), kinds(closed))
    }

    #[track_caller]
    pub(crate) fn opens(&mut self, kinds: &[EventKind]) {
        assert_eq!(self.told(), (kinds.to_vec(), vec![]));
    }

    #[track_caller]
    pub(crate) fn closes(&mut self, kinds: &[EventKind]) {
        assert_eq!(self.told(), (vec![], kinds.to_vec()));
    }

    #[track_caller]
    pub(crate) fn is_silent(&mut self) {
        assert_eq!(self.told(), (vec![], vec![]));
    }
}
