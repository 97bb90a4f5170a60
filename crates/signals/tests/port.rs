//! Scenarios of one port, with real mlx5 and bnxt names and known right values.

use catalog::{Direction, Index, Signal};
use model::{ABSENT, DeviceId, PortId, Schema, SourceKind};
use proptest::prelude::*;
use ring::Window;
use signals::{Options, PortSignals};
use std::sync::Arc;

const MS: u64 = 1_000_000;

fn schema(driver: &str, source: SourceKind, names: &[&str]) -> Arc<Schema> {
    let port = PortId {
        device: DeviceId::pci("0000:1a:00.0"),
        number: 1,
    };
    Arc::new(Schema::new(port, driver, source, names.iter().copied()))
}

fn at(ms: u64) -> Window {
    Window {
        began: ms * MS,
        ended: ms * MS,
    }
}

/// A port of `driver` with these sources open.
fn port(driver: &str, sources: &[(SourceKind, &[&str])]) -> PortSignals {
    let mut port = PortSignals::new(Options { window: 1000 * MS });
    for (source, names) in sources {
        port.open(schema(driver, *source, names));
    }
    port.settle();
    port
}

fn total(port: &PortSignals, signal: Signal, index: Option<Index>) -> Option<u64> {
    let slot = port
        .slots()
        .iter()
        .position(|slot| slot.signal == signal && slot.index == index)?;
    port.value(slot)
}

#[track_caller]
fn assert_close(found: Option<f64>, right: f64) {
    assert!(
        found.is_some_and(|found| (found - right).abs() < 1e-6),
        "{found:?} is not {right}"
    );
}

const WIRE: &[&str] = &["rx_bytes_phy", "rx_packets_phy", "tx_bytes_phy", "tx_packets_phy"];

#[test]
fn utilization_counts_what_packets_take_on_the_wire() {
    let mut port = port(
        "mlx5_core",
        &[(SourceKind::Ethtool, WIRE), (SourceKind::Settings, &["speed"])],
    );
    port.row(SourceKind::Settings, at(0), &[400_000]);
    for tick in 0..=10 {
        // 5 GB and a million packets in 200 ms: 25.1 GB/s of 50.
        port.row(
            SourceKind::Ethtool,
            at(tick * 200),
            &[tick * 5_000_000_000, tick * 1_000_000, 0, 0],
        );
    }
    assert_close(port.utilization(Direction::Rx), 25.1 / 50.0);
    assert_close(port.utilization(Direction::Tx), 0.0);
    let histogram = port.utilization_histogram(Direction::Rx).expect("a histogram");
    assert_eq!(histogram.count(), 10);
    assert!((histogram.sum() - 5.02).abs() < 1e-9);
}

#[test]
fn without_a_speed_there_is_no_utilization_and_a_new_speed_starts_anew() {
    let mut port = port(
        "mlx5_core",
        &[(SourceKind::Ethtool, WIRE), (SourceKind::Settings, &["speed"])],
    );
    let row = |port: &mut PortSignals, tick: u64| {
        port.row(
            SourceKind::Ethtool,
            at(tick * 200),
            &[tick * 1_000_000_000, 0, 0, 0],
        );
    };
    (0..3).for_each(|tick| row(&mut port, tick));
    assert_eq!(port.utilization(Direction::Rx), None);
    port.row(SourceKind::Settings, at(500), &[400_000]);
    assert_eq!(port.utilization(Direction::Rx), None);
    (3..6).for_each(|tick| row(&mut port, tick));
    assert_close(port.utilization(Direction::Rx), 0.1);
    port.row(SourceKind::Settings, at(1100), &[ABSENT]);
    assert_eq!(port.utilization(Direction::Rx), None);
    port.row(SourceKind::Settings, at(1150), &[200_000]);
    (6..9).for_each(|tick| row(&mut port, tick));
    assert_close(port.utilization(Direction::Rx), 0.2);
    // 600 to 1000 ms at the old speed, 1400 to 1600 at the new: no step spans the change.
    assert_eq!(
        port.utilization_histogram(Direction::Rx)
            .map(signals::Histogram::count),
        Some(4)
    );
}

#[test]
fn congestion_ratios_are_taken_over_the_same_span_of_two_sources() {
    let mut port = port(
        "mlx5_core",
        &[
            (
                SourceKind::HwCounters,
                &[
                    "np_ecn_marked_roce_packets",
                    "np_cnp_sent",
                    "rp_cnp_handled",
                    "rp_cnp_ignored",
                ],
            ),
            (
                SourceKind::Ethtool,
                &["rx_vport_rdma_unicast_packets", "rx_vport_rdma_multicast_packets"],
            ),
        ],
    );
    for tick in 0..=30 {
        port.row(
            SourceKind::HwCounters,
            at(tick * 100),
            &[tick * 500, tick * 100, tick * 90, tick * 10],
        );
        if tick % 2 == 0 {
            port.row(
                SourceKind::Ethtool,
                at(tick * 100 + 37),
                &[tick * 9_000, tick * 1_000],
            );
        }
    }
    assert_close(port.ce_ratio(), 0.05);
    assert_close(port.cnp_per_ce(), 0.2);
    assert_close(port.cnp_ignored_ratio(), 0.1);
}

#[test]
fn a_share_of_few_packets_is_no_share() {
    let mut port = port(
        "mlx5_core",
        &[
            (SourceKind::HwCounters, &["np_ecn_marked_roce_packets"]),
            (SourceKind::Ethtool, &["rx_vport_rdma_unicast_packets"]),
        ],
    );
    for tick in 0..=10 {
        port.row(SourceKind::HwCounters, at(tick * 100), &[tick]);
        port.row(SourceKind::Ethtool, at(tick * 100), &[tick * 50]);
    }
    assert_eq!(port.ce_ratio(), None);
    assert_eq!(port.cnp_ignored_ratio(), None);
}

#[test]
fn pfc_moved_from_priority_3_to_4_disturbs_nothing() {
    const OLD: &[&str] = &[
        "rx_bytes_phy",
        "rx_packets_phy",
        "rx_prio3_pause_duration",
        "rx_discards_phy",
    ];
    const NEW: &[&str] = &[
        "rx_bytes_phy",
        "rx_packets_phy",
        "rx_prio4_pause_duration",
        "rx_discards_phy",
    ];
    let mut port = port(
        "mlx5_core",
        &[(SourceKind::Ethtool, OLD), (SourceKind::Settings, &["speed"])],
    );
    port.row(SourceKind::Settings, at(0), &[400_000]);
    for tick in 0..=5 {
        port.row(
            SourceKind::Ethtool,
            at(tick * 200),
            &[tick * 1_000_000_000, 0, 7_000_000 + tick * 100_000, 3],
        );
    }
    assert_close(port.pause_ratio(Direction::Rx, 3), 0.5);
    port.open(schema("mlx5_core", SourceKind::Ethtool, NEW));
    assert_eq!(port.pause_ratio(Direction::Rx, 3), None);
    assert_eq!(
        total(&port, Signal::PfcRxPauseDuration, Some(Index::Priority(3))),
        None
    );
    for tick in 6..=11 {
        port.row(
            SourceKind::Ethtool,
            at(tick * 200),
            &[tick * 1_000_000_000, 0, 900 + tick * 20_000, 3],
        );
        assert_close(port.utilization(Direction::Rx), 0.1);
    }
    assert_close(port.pause_ratio(Direction::Rx, 4), 0.1);
    assert_eq!(
        total(&port, Signal::PfcRxPauseDuration, Some(Index::Priority(4))),
        Some(900 + 11 * 20_000)
    );
    assert_eq!(
        port.pause_histogram(Direction::Rx, 4)
            .map(signals::Histogram::count),
        Some(5)
    );
    assert_eq!(port.quality().resets, 0);
}

#[test]
fn a_32_bit_counter_goes_on_over_its_end() {
    let mut port = port("mlx5_core", &[(SourceKind::HwCounters, &["rx_write_requests"])]);
    let (start, step) = (u64::from(u32::MAX) - 5_000_000, 10_000_000u64);
    for tick in 0..=900u64 {
        port.row(
            SourceKind::HwCounters,
            at(tick * 100),
            &[(start + tick * step) & u64::from(u32::MAX)],
        );
        assert_eq!(
            total(&port, Signal::RoceRxWriteRequests, None),
            Some(start + tick * step)
        );
    }
    assert_eq!(port.quality().resets, 0);
}

#[test]
fn a_counter_that_begins_anew_is_counted_and_no_rate_spans_it() {
    let mut port = port(
        "mlx5_core",
        &[(SourceKind::Ethtool, &["rx_prio3_pause_duration"])],
    );
    for tick in 0..=5 {
        port.row(
            SourceKind::Ethtool,
            at(tick * 200),
            &[9_000_000_000 + tick * 100_000],
        );
    }
    port.row(SourceKind::Ethtool, at(1200), &[40]);
    assert_eq!(port.pause_ratio(Direction::Rx, 3), None);
    assert_eq!(
        total(&port, Signal::PfcRxPauseDuration, Some(Index::Priority(3))),
        Some(40)
    );
    port.row(SourceKind::Ethtool, at(1400), &[40 + 50_000]);
    assert_close(port.pause_ratio(Direction::Rx, 3), 0.25);
    assert_eq!(port.quality().resets, 1);
    assert_eq!(
        port.pause_histogram(Direction::Rx, 3)
            .map(signals::Histogram::count),
        Some(6)
    );
}

#[test]
fn a_narrow_counter_that_falls_together_with_a_wide_one_has_not_wrapped() {
    let mut port = port(
        "mlx5_core",
        &[(SourceKind::HwCounters, &["rx_write_requests", "np_cnp_sent"])],
    );
    port.row(SourceKind::HwCounters, at(0), &[u64::from(u32::MAX) - 5, 1000]);
    port.row(SourceKind::HwCounters, at(1000), &[7, 3]);
    assert_eq!(total(&port, Signal::RoceRxWriteRequests, None), Some(7));
    assert_eq!(total(&port, Signal::CnpTx, None), Some(3));
    assert_eq!(port.quality().resets, 2);
}

#[test]
fn a_sum_does_not_fall_when_one_part_begins_anew() {
    let names = ["rx_vport_rdma_unicast_bytes", "rx_vport_rdma_multicast_bytes"];
    let mut port = port("mlx5_core", &[(SourceKind::Ethtool, &names)]);
    port.row(SourceKind::Ethtool, at(0), &[1_000_000, 50]);
    port.row(SourceKind::Ethtool, at(200), &[1_000_100, 3]);
    assert_eq!(total(&port, Signal::BytesRxRdma, None), Some(1_000_100 + 50 + 3));
    assert_eq!(port.quality().resets, 1);
}

#[test]
fn what_cannot_be_true_enters_nothing() {
    let mut port = port(
        "mlx5_core",
        &[(SourceKind::Ethtool, &["rx_prio3_pause_duration"])],
    );
    port.row(SourceKind::Ethtool, at(0), &[0]);
    port.row(SourceKind::Ethtool, at(200), &[900_000]);
    assert_eq!(port.pause_ratio(Direction::Rx, 3), None);
    assert_eq!(port.quality().implausible, 1);
    assert_eq!(
        port.pause_histogram(Direction::Rx, 3)
            .map(signals::Histogram::count),
        Some(0)
    );
}

#[test]
fn a_cell_that_was_not_read_is_absent_and_costs_nothing_else() {
    let mut port = port(
        "mlx5_core",
        &[(SourceKind::HwCounters, &["np_cnp_sent", "rp_cnp_handled"])],
    );
    port.row(SourceKind::HwCounters, at(0), &[5, 100]);
    port.row(SourceKind::HwCounters, at(100), &[ABSENT, 110]);
    assert_eq!(total(&port, Signal::CnpTx, None), None);
    assert_eq!(total(&port, Signal::CnpRxHandled, None), Some(110));
    port.row(SourceKind::HwCounters, at(200), &[9, 120]);
    assert_eq!(total(&port, Signal::CnpTx, None), Some(9));
    assert_eq!(port.quality().resets, 0);
}

#[test]
fn a_source_that_is_old_or_gone_shows_nothing_and_no_other_takes_its_place() {
    let mut port = port(
        "mlx5_core",
        &[
            (SourceKind::Ethtool, &["rx_vport_rdma_unicast_bytes"]),
            (SourceKind::PortCounters, &["port_rcv_data"]),
        ],
    );
    port.row(SourceKind::Ethtool, at(0), &[1000]);
    port.row(SourceKind::PortCounters, at(0), &[7]);
    assert_eq!(total(&port, Signal::BytesRxRdma, None), Some(1000));
    port.set_fresh(SourceKind::Ethtool, false);
    assert_eq!(total(&port, Signal::BytesRxRdma, None), None);
    port.set_fresh(SourceKind::Ethtool, true);
    port.close(SourceKind::Ethtool);
    // 28 bytes after 1000 would look as if the counter had begun anew.
    assert_eq!(total(&port, Signal::BytesRxRdma, None), None);
}

#[test]
fn before_all_sources_are_known_nothing_is_chosen() {
    let mut port = PortSignals::new(Options { window: 1000 * MS });
    port.open(schema("mlx5_core", SourceKind::PortCounters, &["port_rcv_data"]));
    port.row(SourceKind::PortCounters, at(0), &[7]);
    assert!(port.slots().is_empty());
    port.open(schema(
        "mlx5_core",
        SourceKind::Ethtool,
        &["rx_vport_rdma_unicast_bytes"],
    ));
    port.settle();
    port.row(SourceKind::Ethtool, at(0), &[1000]);
    assert_eq!(total(&port, Signal::BytesRxRdma, None), Some(1000));
}

#[test]
fn a_lower_rank_serves_where_it_is_all_there_is() {
    let mut port = port("mlx5_core", &[(SourceKind::PortCounters, &["port_rcv_data"])]);
    port.row(SourceKind::PortCounters, at(0), &[7]);
    let slot = port
        .slots()
        .iter()
        .position(|slot| slot.signal == Signal::BytesRxRdma)
        .expect("a slot");
    // 4-byte words.
    assert_eq!(
        (port.value(slot), port.slots()[slot].scale.multiply),
        (Some(7), 4)
    );
}

#[test]
fn bnxt_refreshes_once_a_second_and_shows_no_staircase() {
    let names = ["pfc_pri3_rx_duration_us"];
    let mut port = port("bnxt_en", &[(SourceKind::Ethtool, &names)]);
    for tick in 0..100u64 {
        // 30 % of each second, visible only when the second is over.
        port.row(
            SourceKind::Ethtool,
            at(tick * 200),
            &[tick * 200 / 1000 * 300_000],
        );
    }
    assert_close(port.pause_ratio(Direction::Rx, 3), 0.3);
    let histogram = port.pause_histogram(Direction::Rx, 3).expect("a histogram");
    assert_eq!((histogram.count(), histogram.cumulative(3)), (19, 0));
    assert_eq!(port.quality().implausible, 0);
}

#[test]
fn pause_is_observed_only_where_pfc_is_enabled() {
    let names = ["rx_prio0_pause_duration", "rx_prio3_pause_duration"];
    let mut port = PortSignals::new(Options { window: 1000 * MS });
    port.open(schema("mlx5_core", SourceKind::Dcb, &["pfc_enabled"]));
    port.row(SourceKind::Dcb, at(0), &[0b1000]);
    port.open(schema("mlx5_core", SourceKind::Ethtool, &names));
    port.settle();
    assert!(port.pause_histogram(Direction::Rx, 3).is_some());
    assert!(port.pause_histogram(Direction::Rx, 0).is_none());
}

proptest! {
    #[test]
    fn totals_follow_the_true_count_and_ratios_stay_between_zero_and_one(
        steps in prop::collection::vec((1u64..400, 0u64..400_000, prop::bool::weighted(0.1)), 1..80),
    ) {
        let mut port = port("mlx5_core", &[(SourceKind::Ethtool, &["tx_prio3_pause_duration"])]);
        let (mut now, mut count) = (0, 0);
        let row = |port: &mut PortSignals, now, count| port.row(SourceKind::Ethtool, at(now), &[count]);
        row(&mut port, now, count);
        for (elapsed, paused, missed) in steps {
            now += elapsed;
            count += paused.min(elapsed * 1000);
            row(&mut port, now, if missed { ABSENT } else { count });
            let right = (!missed).then_some(count);
            prop_assert_eq!(total(&port, Signal::PfcTxPauseDuration, Some(Index::Priority(3))), right);
            prop_assert!(port.pause_ratio(Direction::Tx, 3).is_none_or(|ratio| (0.0..=1.0).contains(&ratio)));
        }
        prop_assert_eq!(port.quality(), signals::Quality::default());
    }
}

/// A bnxt port whose firmware stops answering after `seconds`; it is read twice a second, and goes on to receive
/// `packets` a second by the word of the hardware.
fn firmware_that_stops_after(seconds: u64, packets: u64) -> PortSignals {
    let names = &["rx_write_req", "oos_drop_count", "rx_pkts"];
    let mut port = port("bnxt_en", &[(SourceKind::HwCounters, names)]);
    for tick in 0..=2 * 400 {
        let alive = tick.min(2 * seconds);
        port.row(
            SourceKind::HwCounters,
            at(tick * 500),
            &[alive * 50, 3, tick * packets / 2],
        );
    }
    port
}

#[test]
fn firmware_that_answers_with_old_values_is_recognised() {
    // 200 s of standing still while ten million packets pass.
    let port = firmware_that_stops_after(200, 50_000);
    assert!(port.is_frozen(SourceKind::HwCounters));
    // What the firmware has no part in goes on; the rest would look like a fabric gone quiet.
    assert_eq!(total(&port, Signal::PacketsRxRdma, None), Some(20_000_000));
    assert_eq!(total(&port, Signal::RoceRxOutOfSequence, None), None);
}

#[test]
fn what_stands_still_for_another_reason_is_not_called_frozen() {
    let frozen = |port: PortSignals| port.is_frozen(SourceKind::HwCounters);
    assert!(!frozen(firmware_that_stops_after(400, 50_000)), "it moves");
    assert!(!frozen(firmware_that_stops_after(300, 50_000)), "not long enough");
    assert!(!frozen(firmware_that_stops_after(200, 100)), "an idle node");
    assert!(
        !frozen(firmware_that_stops_after(0, 50_000)),
        "it never moved: a node that only sends"
    );
    assert!(!frozen(firmware_that_stops_after(20, 50_000)), "it seldom moves");
}

#[test]
fn frozen_firmware_that_moves_again_is_forgiven() {
    let mut port = firmware_that_stops_after(200, 50_000);
    port.row(SourceKind::HwCounters, at(500_000), &[1_000_000, 3, 90_000_000]);
    assert!(!port.is_frozen(SourceKind::HwCounters));
}

#[test]
fn a_full_counter_has_no_value_and_is_named() {
    let names = &["link_downed", "symbol_error"];
    let mut port = port("mlx5_core", &[(SourceKind::PortCounters, names)]);
    port.row(SourceKind::PortCounters, at(0), &[7, 65_535]);
    let full: Vec<_> = port.full(SourceKind::PortCounters).collect();
    assert_eq!(full, ["symbol_error"]);
    assert_eq!(total(&port, Signal::LinkSymbolErrors, None), None);
    assert_eq!(total(&port, Signal::LinkDownEvents, None), Some(7));
}

#[test]
fn a_device_that_comes_back_with_smaller_counters_has_begun_anew() {
    let names: &[&str] = &["out_of_sequence", "np_cnp_sent"];
    let mut before = port("mlx5_core", &[(SourceKind::HwCounters, names)]);
    before.row(SourceKind::HwCounters, at(0), &[1000, 50]);
    before.row(SourceKind::HwCounters, at(100), &[3, 60]);
    assert_eq!(before.quality().resets, 1);

    let mut after = before.again();
    assert_eq!(after.quality().resets, 1);
    after.settle();
    assert_eq!(after.slots(), [], "nothing is known of the new device");
    after.open(schema("mlx5_core", SourceKind::HwCounters, names));
    let cnps = |port: &PortSignals| total(port, Signal::CnpTx, None);
    assert_eq!(cnps(&after), None, "what the old one read is no value of the new");
    after.row(SourceKind::HwCounters, at(300), &[5, 2]);
    assert_eq!(after.quality().resets, 2, "one counter fell, the other did not");
    assert_eq!(cnps(&after), Some(2));

    // Of 32 bits, and in the upper half before: on another device that is no wrap.
    after.row(SourceKind::HwCounters, at(400), &[u64::from(u32::MAX), 2]);
    let mut after = after.again();
    after.open(schema("mlx5_core", SourceKind::HwCounters, names));
    after.settle();
    after.row(SourceKind::HwCounters, at(9_000), &[1, 2]);
    assert_eq!(after.quality().resets, 3);

    // It goes again before anything was read of it, and comes back.
    let mut again = after.again().again();
    again.open(schema("mlx5_core", SourceKind::HwCounters, names));
    again.settle();
    again.row(SourceKind::HwCounters, at(9_500), &[0, 2]);
    assert_eq!(again.quality().resets, 4);
}
