//! Links, sources, graces and rails: what the simulated server does not do, and what must not be told.

use crate::rows::{HELD, Rows, SECOND};
use model::{ABSENT, SourceKind};
use signals::detect::EventKind::*;
use signals::detect::{EventChange, NodeDetectors, RailTraffic, Thresholds, usual_speed};

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
