//! Flow control and congestion: what the simulated server does not do, and what must not be told.

use crate::rows::{HELD, MS, Rows, SECOND, TICK};
use catalog::Direction;
use model::{DeviceId, PortId, Schema, SourceKind};
use ring::Window;
use signals::detect::EventKind::*;
use signals::detect::{Detectors, Event, EventChange, PortFacts, Severity, Thresholds};
use signals::{Options, PortSignals};
use std::sync::Arc;

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
            severity: Severity::Critical,
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
fn a_storm_is_open_within_a_second_whenever_it_begins() {
    let slowest = crate::onset::delays().into_iter().max();
    assert!(slowest.is_some_and(|slowest| slowest < 700 * MS), "{slowest:?}");
}

/// A driver that counts XOFF frames and no time: 400 Gbit/s are held by 11,921 frames a second.
#[test]
fn a_storm_of_frames_is_one_only_while_nothing_is_sent() {
    let port = PortId {
        device: DeviceId::pci("0000:1a:00.0"),
        number: 1,
    };
    let names = ["rx_priority_3_xoff.nic", "tx_bytes.nic", "tx_unicast.nic"];
    let mut signals = PortSignals::new(Options { window: SECOND });
    let open = |signals: &mut PortSignals, source, names: &[&str]| {
        signals.open(Arc::new(Schema::new(
            port.clone(),
            "ice",
            source,
            names.iter().copied(),
        )));
    };
    open(&mut signals, SourceKind::Ethtool, &names);
    open(&mut signals, SourceKind::Settings, &["speed"]);
    open(&mut signals, SourceKind::Dcb, &["pfc_enabled"]);
    signals.settle();
    let mut detectors = Detectors::new(Thresholds::default());
    let (mut now, mut frames, mut bytes) = (0, 0, 0);
    let mut play = |seconds: u64, sends: bool, held: bool, mask: u64| {
        let mut told = Vec::new();
        for _ in 0..seconds * 5 {
            now += TICK;
            frames += if held { 3_000 } else { 0 };
            bytes += if sends { 5_000_000_000 } else { 0 };
            let window = Window {
                began: now,
                ended: now,
            };
            signals.row(SourceKind::Settings, window, &[400_000]);
            signals.row(SourceKind::Dcb, window, &[mask]);
            signals.row(SourceKind::Ethtool, window, &[frames, bytes, 0]);
            told.extend(detectors.look(now, &signals, &PortFacts::default()));
        }
        told.iter()
            .map(|change| (change.event().kind, change.event().ended.is_some()))
            .collect::<Vec<_>>()
    };
    assert_eq!(play(10, true, true, 1 << 3), []);
    assert_eq!(play(2, false, true, 1 << 3), [(PfcStorm, false)]);
    assert_eq!(play(20, true, false, 0), []);
    assert_eq!(play(3, true, false, 1 << 3), [(PfcStorm, true)]);
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
fn priorities_that_are_meant_are_known_by_the_configuration() {
    let mut rows = Rows::new(&Thresholds {
        lossless: Some(1 << 3),
        ..Thresholds::default()
    });
    rows.set("pfc_enabled", 0xff);
    rows.play(6_000, &[("rx_prio3_pause", 1_000)]);
    rows.is_silent();
    rows.play(3_000, &[("rx_prio0_pause", 1_000)]);
    assert_eq!(rows.told[0].event().priority, Some(0));
    rows.opens(&[PauseOnLossyPriority]);
}

#[test]
fn pause_between_which_traffic_passes_is_sustained_and_no_storm() {
    let congested = [("rx_prio3_pause_duration", HELD / 5), ("rp_cnp_handled", 1_000)];
    let mut rows = Rows::rested();
    rows.play(9_000, &congested);
    rows.is_silent();
    rows.play(3_000, &congested);
    rows.opens(&[SustainedPause]);
    // A storm in the middle of it is another event.
    rows.play(10_000, &[("rx_prio3_pause_duration", HELD)]);
    rows.opens(&[PfcStorm]);
    rows.play(30_000, &[]);
    rows.closes(&[PfcStorm, SustainedPause]);
}

#[test]
fn what_lasts_becomes_usual() {
    let with = |cnps| {
        [
            ("tx_vport_rdma_unicast_packets", 10_000_000),
            ("rp_cnp_handled", cnps),
        ]
    };
    let mut rows = Rows::rested();
    rows.play(600_000, &with(10_000));
    rows.play(60_000, &with(100_000));
    rows.opens(&[CnpSpike]);
    rows.play(1_200_000, &with(100_000));
    rows.closes(&[CnpSpike]);
}
