//! Detectors on rows made by hand: what the simulated server does not do, and what must not be told.

use catalog::Direction;
use model::{ABSENT, DeviceId, PortId, Schema, SourceKind};
use ring::Window;
use signals::detect::EventKind::{self, *};
use signals::detect::{
    Detectors, Event, EventChange, NodeDetectors, PortFacts, RailTraffic, Thresholds, usual_speed,
};
use signals::{Options, PortSignals};
use std::collections::BTreeMap;
use std::sync::Arc;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const TICK: u64 = 200 * MS;

const SOURCES: [(SourceKind, &[&str]); 5] = [
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
const HELD: u64 = 1_000_000;

struct Rows {
    now: u64,
    values: BTreeMap<&'static str, u64>,
    signals: PortSignals,
    detectors: Detectors,
    facts: PortFacts,
    told: Vec<EventChange>,
}

impl Rows {
    /// A port that is up at 400 Gbit/s, has PFC on priority 3, and counts 132 million of everything since its boot.
    fn new(thresholds: &Thresholds) -> Self {
        let mut signals = PortSignals::new(Options { window: SECOND });
        let mut values = BTreeMap::new();
        for (source, names) in SOURCES {
            let port = PortId {
                device: DeviceId::pci("0000:1a:00.0"),
                number: 1,
            };
            signals.open(Arc::new(Schema::new(
                port,
                "mlx5_core",
                source,
                names.iter().copied(),
            )));
            values.extend(names.iter().map(|name| (*name, 132_000_000)));
        }
        signals.settle();
        values.extend([("carrier", 1), ("speed", 400_000), ("pfc_enabled", 1 << 3)]);
        Self {
            now: 0,
            values,
            signals,
            detectors: Detectors::new(*thresholds),
            facts: PortFacts::default(),
            told: Vec::new(),
        }
    }

    /// One that has been watched for long enough.
    fn rested() -> Self {
        let mut rows = Self::new(&Thresholds::default());
        rows.play(6_000, &[]);
        rows
    }

    fn set(&mut self, name: &'static str, value: u64) {
        assert!(self.values.insert(name, value).is_some(), "there is {name}");
    }

    /// Goes on for so long, with a row of each source in 200 ms, while counters grow by so much a second.
    fn play(&mut self, ms: u64, growth: &[(&'static str, u64)]) {
        for _ in 0..ms * MS / TICK {
            self.now += TICK;
            for (name, per_second) in growth {
                *self.values.get_mut(name).expect("a counter") += per_second / 5;
            }
            for (source, names) in SOURCES {
                let row: Vec<u64> = names.iter().map(|name| self.values[name]).collect();
                let window = Window {
                    began: self.now,
                    ended: self.now,
                };
                self.signals.row(source, window, &row);
            }
            self.look();
        }
    }

    fn look(&mut self) {
        let changes = self.detectors.look(self.now, &self.signals, &self.facts);
        self.told.extend(changes);
    }

    /// Kinds of what was opened since the last time, and of what was closed.
    fn told(&mut self) -> (Vec<EventKind>, Vec<EventKind>) {
        let (opened, closed): (Vec<_>, Vec<_>) = self
            .told
            .drain(..)
            .partition(|change| matches!(change, EventChange::Opened(_)));
        let kinds = |changes: Vec<EventChange>| changes.iter().map(|change| change.event().kind).collect();
        (kinds(opened), kinds(closed))
    }

    #[track_caller]
    fn opens(&mut self, kinds: &[EventKind]) {
        assert_eq!(self.told(), (kinds.to_vec(), vec![]));
    }

    #[track_caller]
    fn closes(&mut self, kinds: &[EventKind]) {
        assert_eq!(self.told(), (vec![], kinds.to_vec()));
    }

    #[track_caller]
    fn is_silent(&mut self) {
        assert_eq!(self.told(), (vec![], vec![]));
    }
}

#[test]
fn a_storm_has_its_direction_priority_times_and_evidence() {
    let mut rows = Rows::rested();
    rows.play(3_000, &[("tx_prio3_pause_duration", HELD)]);
    let EventChange::Opened(event) = rows.told.remove(0) else {
        panic!("it begins")
    };
    assert_eq!(
        event,
        Event {
            kind: PfcStorm,
            severity: signals::detect::Severity::Critical,
            priority: Some(3),
            direction: Some(Direction::Tx),
            began: 6 * SECOND,
            ended: None,
            evidence: vec![("pause_ratio", 1.0), ("utilization_tx", 0.0)],
        }
    );
    rows.play(2_000, &[]);
    let EventChange::Closed(closed) = rows.told.remove(0) else {
        panic!("it ends")
    };
    assert_eq!((closed.began, closed.ended), (6 * SECOND, Some(9 * SECOND)));
    assert_eq!(closed.evidence.last(), Some(&("peak", 1.0)));
    rows.is_silent();
}

#[test]
fn one_held_sample_is_no_storm() {
    let mut rows = Rows::rested();
    for _ in 0..20 {
        rows.play(
            200,
            &[("rx_prio3_pause_duration", HELD), ("rp_cnp_handled", 1_000)],
        );
        rows.play(200, &[("rp_cnp_handled", 1_000)]);
    }
    let (opened, _) = rows.told();
    assert!(!opened.contains(&PfcStorm), "{opened:?}");
}

#[test]
fn a_storm_goes_on_while_it_cannot_be_seen() {
    let mut rows = Rows::rested();
    rows.play(2_000, &[("rx_prio3_pause_duration", HELD)]);
    rows.opens(&[PfcStorm]);
    // PFC is switched off: nothing is paused any more, and nothing is known.
    rows.set("pfc_enabled", 0);
    rows.play(20_000, &[]);
    rows.is_silent();
    // Nor does it end by counters that begin anew, or by a source that is silent.
    rows.set("pfc_enabled", 1 << 3);
    rows.set("rx_prio3_pause_duration", 0);
    rows.play(600, &[("rx_prio3_pause_duration", HELD)]);
    rows.opens(&[CounterReset]);
    rows.signals.set_fresh(SourceKind::Ethtool, false);
    (0..100).for_each(|_| {
        rows.now += TICK;
        rows.look();
    });
    rows.closes(&[CounterReset]);
    rows.signals.set_fresh(SourceKind::Ethtool, true);
    rows.play(2_000, &[]);
    rows.closes(&[PfcStorm]);
}

#[test]
fn a_flapping_link_is_no_storm() {
    let mut rows = Rows::rested();
    for _ in 0..3 {
        rows.set("carrier", 0);
        rows.values
            .entry("carrier_down_count")
            .and_modify(|count| *count += 1);
        let errors = [("rx_prio3_pause_duration", HELD), ("out_of_sequence", 1_000)];
        rows.play(1_000, &errors);
        rows.set("carrier", 1);
        rows.play(1_000, &errors);
    }
    rows.opens(&[LinkDown, LinkFlap]);
    rows.play(60_000, &[]);
    rows.closes(&[LinkDown]);
    rows.play(600_000, &[]);
    let ended = rows.told.last().and_then(|change| change.event().ended);
    assert!(
        ended.is_some_and(|ended| ended.abs_diff(12 * SECOND) <= 2 * SECOND),
        "{ended:?}"
    );
    rows.closes(&[LinkFlap]);
}

#[test]
fn a_carrier_lost_between_two_looks_is_told() {
    let mut rows = Rows::rested();
    rows.values
        .entry("carrier_down_count")
        .and_modify(|count| *count += 1);
    rows.play(200, &[]);
    rows.opens(&[LinkDown]);
    rows.play(6_000, &[]);
    rows.closes(&[LinkDown]);
}

#[test]
fn links_that_train_after_a_boot_are_not_told() {
    let mut rows = Rows::new(&Thresholds::default());
    for second in 0..60 {
        rows.facts.uptime = Some((second + 30) * SECOND);
        rows.set("carrier", second % 2);
        rows.values
            .entry("carrier_down_count")
            .and_modify(|count| *count += 1);
        rows.play(1_000, &[("out_of_sequence", 1_000)]);
    }
    rows.facts.uptime = Some(200 * SECOND);
    rows.set("carrier", 1);
    rows.play(60_000, &[]);
    rows.is_silent();
    // One that trains for ever is down.
    rows.set("carrier", 0);
    rows.play(1_000, &[]);
    rows.opens(&[LinkDown]);
}

#[test]
fn a_port_without_a_cable_is_not_down() {
    let mut rows = Rows::new(&Thresholds::default());
    rows.set("carrier", 0);
    rows.set("speed", ABSENT);
    rows.play(30_000, &[]);
    rows.is_silent();
    // Unless it is known to have had one.
    rows.facts.known_up = true;
    rows.play(200, &[]);
    rows.opens(&[LinkDown]);
}

#[test]
fn nothing_opens_at_the_start() {
    let mut rows = Rows::new(&Thresholds::default());
    rows.play(
        4_800,
        &[("rx_prio3_pause_duration", HELD), ("rx_prio3_discards", 100)],
    );
    rows.is_silent();
    rows.play(
        1_000,
        &[("rx_prio3_pause_duration", HELD), ("rx_prio3_discards", 100)],
    );
    rows.opens(&[DropsOnLosslessPriority, PfcStorm]);
}

#[test]
fn totals_since_boot_are_no_news_and_an_idle_port_is_no_fault() {
    let mut rows = Rows::rested();
    rows.play(3_600_000, &[]);
    rows.is_silent();
}

#[test]
fn traffic_after_an_idle_hour_is_no_spike_and_five_times_the_usual_is() {
    let traffic = [
        ("tx_vport_rdma_unicast_packets", 10_000_000),
        ("rx_vport_rdma_unicast_packets", 10_000_000),
    ];
    let with = |cnps: u64| [traffic[0], traffic[1], ("rp_cnp_handled", cnps)];
    let mut rows = Rows::rested();
    rows.play(3_600_000, &[]);
    rows.play(120_000, &with(20_000));
    rows.is_silent();
    rows.play(10_000, &with(60_000));
    rows.is_silent();
    rows.play(5_000, &with(200_000));
    rows.opens(&[CnpSpike]);
    rows.play(20_000, &with(20_000));
    rows.closes(&[CnpSpike]);
    // And the end of the job is its end as well.
    rows.play(5_000, &with(300_000));
    rows.opens(&[CnpSpike]);
    rows.play(20_000, &[]);
    rows.closes(&[CnpSpike]);
}

#[test]
fn marks_without_cnps() {
    let mut rows = Rows::rested();
    rows.play(
        10_000,
        &[("np_ecn_marked_roce_packets", 1_000), ("np_cnp_sent", 200)],
    );
    rows.is_silent();
    rows.play(10_000, &[("np_ecn_marked_roce_packets", 1_000)]);
    rows.opens(&[CeWithoutCnp]);
    rows.play(
        40_000,
        &[("np_ecn_marked_roce_packets", 1_000), ("np_cnp_sent", 200)],
    );
    rows.closes(&[CeWithoutCnp]);
}

#[test]
fn drops_are_told_of_a_lossless_priority_alone() {
    let mut rows = Rows::rested();
    rows.play(2_000, &[("rx_prio0_discards", 1_000)]);
    rows.is_silent();
    rows.play(2_000, &[("rx_prio3_discards", 1_000)]);
    rows.opens(&[DropsOnLosslessPriority]);
}

#[test]
fn pause_on_a_priority_without_pfc() {
    let mut rows = Rows::rested();
    rows.play(5_000, &[("rx_prio3_pause", 1_000)]);
    rows.is_silent();
    rows.play(5_000, &[("rx_prio0_pause", 1_000)]);
    let event = rows.told[0].event();
    assert_eq!((event.priority, event.direction), (Some(0), Some(Direction::Rx)));
    rows.opens(&[PauseOnLossyPriority]);
    // Now it is meant.
    rows.set("pfc_enabled", 0b1001);
    rows.play(40_000, &[("rx_prio0_pause", 1_000)]);
    rows.closes(&[PauseOnLossyPriority]);
}

#[test]
fn global_pause_is_what_is_left_without_pfc() {
    let mut rows = Rows::rested();
    rows.play(5_000, &[("rx_pause_ctrl_phy", 1_000), ("rx_prio3_pause", 1_000)]);
    rows.is_silent();
    rows.play(5_000, &[("rx_pause_ctrl_phy", 1_000)]);
    rows.opens(&[GlobalPause]);
}

#[test]
fn the_firmware_tells_a_storm_by_itself() {
    let mut rows = Rows::rested();
    rows.play(2_000, &[("tx_pause_storm_warning_events", 10)]);
    let event = rows.told[0].event();
    assert_eq!((event.priority, event.direction), (None, Some(Direction::Tx)));
    rows.opens(&[PfcStorm]);
}

#[test]
fn pause_without_ecn_is_as_meant_where_pfc_alone_is() {
    for expect_ecn in [true, false] {
        let mut rows = Rows::new(&Thresholds {
            expect_ecn,
            ..Thresholds::default()
        });
        rows.play(6_000, &[]);
        rows.play(5_000, &[("rx_prio3_pause_duration", 20_000)]);
        let wanted: &[_] = if expect_ecn { &[PauseWithoutCe] } else { &[] };
        rows.opens(wanted);
    }
}

#[test]
fn half_the_lanes_are_slow_and_no_carrier_is_not() {
    let mut rows = Rows::rested();
    rows.set("speed", ABSENT);
    rows.play(30_000, &[]);
    rows.is_silent();
    rows.set("speed", 200_000);
    rows.play(9_000, &[]);
    rows.is_silent();
    rows.play(2_000, &[]);
    rows.opens(&[SpeedBelowUsual]);
    rows.set("speed", 400_000);
    rows.play(1_000, &[]);
    rows.closes(&[SpeedBelowUsual]);
}

#[test]
fn frozen_firmware_is_told_after_minutes_of_traffic() {
    let traffic = [
        ("tx_packets_phy", 1_000_000),
        ("rx_vport_rdma_unicast_packets", 1_000_000),
    ];
    let mut rows = Rows::rested();
    let alive = [
        traffic[0],
        traffic[1],
        ("np_cnp_sent", 100),
        ("np_ecn_marked_roce_packets", 100),
    ];
    rows.play(60_000, &alive);
    rows.is_silent();
    rows.play(180_000, &traffic);
    assert_eq!(rows.told[0].event().evidence, [("hw_counters", 1.0)]);
    rows.opens(&[SourceFrozen]);
    rows.play(20_000, &alive);
    rows.closes(&[SourceFrozen]);
}

#[test]
fn what_the_agent_tells_is_told() {
    let mut rows = Rows::rested();
    rows.facts.stalled = Some(SourceKind::Ethtool);
    rows.look();
    assert_eq!(rows.told[0].event().evidence, [("ethtool", 1.0)]);
    rows.opens(&[SourceStalled]);
    rows.facts.stalled = None;
    rows.play(2_000, &[]);
    rows.closes(&[SourceStalled]);
    // A moment's absence is none.
    rows.facts.gone = true;
    rows.play(2_000, &[]);
    rows.facts.gone = false;
    rows.play(2_000, &[]);
    rows.is_silent();
    rows.facts.gone = true;
    rows.play(6_000, &[]);
    rows.opens(&[DeviceGone]);
    rows.told.extend(rows.detectors.close(rows.now));
    rows.closes(&[DeviceGone]);
}

#[test]
fn most_of_the_ports_say_what_speed_is_usual() {
    assert_eq!(usual_speed(&[]), None);
    assert_eq!(usual_speed(&[400e9]), None);
    assert_eq!(usual_speed(&[400e9, 200e9]), None);
    assert_eq!(usual_speed(&[200e9, 400e9, 400e9]), Some(400e9));
    assert_eq!(usual_speed(&[200e9, 400e9, 200e9, 400e9]), Some(400e9));
}

#[test]
fn idle_rails_may_be_so_unevenly() {
    let busy = |bytes: u64| {
        let mut rows = Rows::rested();
        rows.play(2_000, &[("tx_bytes_phy", bytes), ("rx_bytes_phy", bytes)]);
        RailTraffic::of(&rows.signals)
    };
    let mut node = NodeDetectors::new(Thresholds::default());
    let (idle, some, most) = (busy(1_000_000), busy(10_000_000_000), busy(40_000_000_000));
    let mut now = 0;
    let mut kinds = |rails: [Option<RailTraffic>; 3], seconds: u64| {
        let mut told = Vec::new();
        for _ in 0..seconds * 10 {
            now += SECOND / 10;
            told.extend(node.look(now, rails.into_iter()));
        }
        told
    };
    assert!(kinds([idle, idle, busy(100_000_000)], 120).is_empty());
    assert!(kinds([some, some, None], 120).is_empty());
    let told = kinds([some, some, most], 60);
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].event().evidence[0], ("busiest_rail", 2.0));
    assert!(
        kinds([some, most, some], 20)
            .iter()
            .all(|change| matches!(change, EventChange::Opened(_)))
    );
    let ended = kinds([idle, idle, idle], 120);
    assert_eq!(ended.len(), 2);
}
