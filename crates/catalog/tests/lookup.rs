//! From names as drivers give them to meanings.

use catalog::{Index, Kind, Meaning, Scale, Signal, SourceKind, Unit, meaning};
use proptest::prelude::*;

fn known(driver: &str, source: SourceKind, counter: &str) -> Meaning {
    meaning(driver, source, counter).unwrap_or_else(|| panic!("{driver} {source} {counter} is not known"))
}

fn signal(driver: &str, source: SourceKind, counter: &str) -> &'static str {
    known(driver, source, counter).signal().as_str()
}

#[test]
fn mlx5() {
    let sent = known("mlx5_core", SourceKind::HwCounters, "np_cnp_sent");
    assert_eq!(
        (sent.signal().as_str(), sent.index, sent.entry.unit),
        ("cnp.tx", None, Unit::Packets)
    );
    let paused = known("mlx5_core", SourceKind::Ethtool, "rx_prio3_pause_duration");
    assert_eq!(
        (paused.signal().as_str(), paused.index),
        ("pfc.rx_pause_duration", Some(Index::Priority(3)))
    );
    assert_eq!(
        paused.entry.unit.base(),
        (
            "seconds",
            Scale {
                multiply: 1,
                decimals: 6
            }
        )
    );
    let data = known("mlx5_core", SourceKind::PortCounters, "port_rcv_data");
    assert!((data.entry.unit.base().1.apply(1000.0) - 4000.0).abs() < f64::EPSILON);
    let stalled = known("mlx5_core", SourceKind::Ethtool, "outbound_pci_stalled_wr");
    assert_eq!(
        (stalled.entry.kind, stalled.entry.unit.base().0),
        (Kind::Gauge, "ratio")
    );
    assert_eq!(
        known("mlx5_core", SourceKind::HwCounters, "out_of_sequence")
            .entry
            .width
            .max(),
        u64::from(u32::MAX)
    );
}

#[test]
fn counters_that_switchdev_moves_to_the_device_keep_their_meaning() {
    assert_eq!(
        signal("mlx5_core", SourceKind::DeviceCounters, "np_cnp_sent"),
        "cnp.tx"
    );
    assert_eq!(
        signal("mlx5_core", SourceKind::HwCounters, "vport_out_of_sequence"),
        "vport.rx_out_of_sequence"
    );
}

#[test]
fn a_counter_of_the_device_comes_before_one_of_the_port_by_the_same_name() {
    let device = known("mana", SourceKind::DeviceCounters, "rate_inc_events");
    assert_eq!(device.entry.source, SourceKind::DeviceCounters);
}

#[test]
fn bnxt_speaks_two_vocabularies() {
    for (old, new, both) in [
        ("tx_cnp_pkts", "np_cnp_pkts", "cnp.tx"),
        ("tx_cnp_pkts", "np_cnp_sent", "cnp.tx"),
        ("rx_cnp_pkts", "rp_cnp_handled", "cnp.rx"),
        ("rx_ecn_marked_pkts", "np_ecn_marked_roce_packets", "ecn.rx_ce"),
        ("oos_drop_count", "out_of_sequence", "roce.rx_out_of_sequence"),
        ("to_retransmits", "local_ack_timeout_err", "roce.ack_timeout"),
        ("rx_write_req", "rx_write_requests", "roce.rx_write_requests"),
    ] {
        assert_eq!(signal("bnxt_en", SourceKind::HwCounters, old), both);
        assert_eq!(signal("bnxt_en", SourceKind::HwCounters, new), both);
    }
}

#[test]
fn what_bnxt_calls_handled_is_not_what_mlx5_calls_handled() {
    assert_eq!(
        signal("bnxt_en", SourceKind::HwCounters, "rp_cnp_handled"),
        "cnp.rx"
    );
    assert_eq!(
        signal("mlx5_core", SourceKind::HwCounters, "rp_cnp_handled"),
        "cnp.rx_handled"
    );
}

#[test]
fn one_name_means_two_things_in_two_sources() {
    assert_eq!(signal("bnxt_en", SourceKind::Ethtool, "rx_bytes"), "bytes.rx");
    assert_eq!(
        signal("bnxt_en", SourceKind::HwCounters, "rx_bytes"),
        "bytes.rx_rdma"
    );
}

#[test]
fn bnxt_pause_of_a_priority() {
    let paused = known("bnxt_en", SourceKind::Ethtool, "pfc_pri3_rx_duration_us");
    assert_eq!(
        (paused.signal().as_str(), paused.index),
        ("pfc.rx_pause_duration", Some(Index::Priority(3)))
    );
    assert_eq!(
        signal("bnxt_en", SourceKind::Ethtool, "rx_pfc_ena_frames_pri3"),
        "pfc.rx_frames"
    );
}

#[test]
fn irdma_names_hold_spaces_and_changed_once() {
    assert_eq!(
        signal("ice", SourceKind::HwCounters, "RNR received"),
        "roce.rx_rnr_nak"
    );
    assert_eq!(
        signal("irdma", SourceKind::HwCounters, "Nak Sequence Error Implied"),
        "roce.implied_nak"
    );
    assert_eq!(
        signal("ice", SourceKind::HwCounters, "tcpRetransSegs"),
        "roce.retransmits"
    );
    assert_eq!(
        signal("ice", SourceKind::HwCounters, "RetransSegs"),
        "roce.retransmits"
    );
}

#[test]
fn erdma_has_two_spellings() {
    for name in ["tx_bytes_cnt", "hw_tx_bytes_cnt"] {
        assert_eq!(signal("erdma", SourceKind::HwCounters, name), "bytes.tx_rdma");
    }
}

#[test]
fn names_are_taken_as_they_are() {
    for name in [
        "NP_CNP_SENT",
        "np_cnp_sent ",
        "np_cnp_sen",
        "",
        "rx_prio8_pause",
        "rx_prio{prio}_pause",
        "rx_prio03_pause",
    ] {
        assert!(
            meaning("mlx5_core", SourceKind::HwCounters, name).is_none(),
            "{name:?}"
        );
        assert!(
            meaning("mlx5_core", SourceKind::Ethtool, name).is_none(),
            "{name:?}"
        );
    }
    assert!(meaning("ice", SourceKind::HwCounters, "rnr received").is_none());
}

#[test]
fn an_unknown_driver_still_has_what_the_kernel_tells() {
    assert_eq!(
        signal("no_such_driver", SourceKind::Link, "carrier_down_count"),
        "link.carrier_down"
    );
    assert!(meaning("no_such_driver", SourceKind::Ethtool, "rx_bytes_phy").is_none());
    assert!(meaning("*", SourceKind::Ethtool, "rx_bytes_phy").is_none());
}

#[test]
fn what_a_driver_puts_into_the_pfc_object_differs() {
    assert_eq!(
        signal("mlx5_core", SourceKind::Dcb, "pfc_indications_prio3"),
        "pfc.rx_frames"
    );
    assert_eq!(
        signal("ice", SourceKind::Dcb, "pfc_indications_prio3"),
        "pfc.rx_xoff_frames"
    );
    assert_eq!(
        signal("i40e", SourceKind::Dcb, "pfc_requests_prio3"),
        "pfc.tx_xoff_frames"
    );
    assert_eq!(
        signal("qede", SourceKind::Dcb, "pfc_indications_prio3"),
        "stub.pfc_indications"
    );
}

#[test]
fn packets_of_an_intel_port_are_the_sum_of_three() {
    for (driver, prefix, suffix) in [("ice", "", ".nic"), ("i40e", "port.", "")] {
        for direction in ["rx", "tx"] {
            for cast in ["unicast", "multicast", "broadcast"] {
                let name = format!("{prefix}{direction}_{cast}{suffix}");
                let packets = known(driver, SourceKind::Ethtool, &name);
                assert_eq!(
                    (packets.signal().as_str(), packets.index, packets.entry.summed),
                    (format!("packets.{direction}").as_str(), None, true),
                    "{driver}: {name}"
                );
            }
        }
    }
}

/// What the names with "dropped" and "discard" in them mean [huatuo 26, `node_exporter` 3335].
#[test]
fn dropped_means_something_else_on_each_driver() {
    for (driver, name, right) in [
        ("mlx5_core", "rx_discards_phy", Some("drop.rx_no_buffer")),
        ("mlx5_core", "rx_out_of_buffer", Some("drop.rx_no_wqe")),
        ("mlx5_core", "rx_dropped", None),
        ("bnxt_en", "rx_stat_discard", Some("drop.rx")),
        ("bnxt_en", "rx_dropped", None),
        ("ice", "rx_dropped.nic", Some("drop.rx_no_buffer")),
        ("ice", "rx_dropped", Some("drop.rx_function")),
        ("i40e", "port.rx_discards", Some("drop.rx_no_buffer")),
        ("i40e", "port.rx_dropped", Some("drop.rx_no_buffer")),
        ("i40e", "port_rx_dropped", None),
        // The kernel's own, which changed its meaning.
        ("i40e", "rx_dropped", None),
        ("ionic", "frames_rx_dropped", Some("drop.rx")),
        ("ionic", "hw_rx_dropped", Some("drop.rx_function")),
        ("mana", "hc_rx_discards_no_wqe", Some("drop.rx_no_wqe")),
        ("qede", "no_buff_discards", Some("drop.rx_no_wqe")),
        ("qede", "brb_discards", Some("drop.rx_no_buffer")),
    ] {
        let found = meaning(driver, SourceKind::Ethtool, name).map(|found| found.signal().as_str());
        assert_eq!(found, right, "{driver}: {name}");
    }
}

#[test]
fn ionic_rdma_answers_all_ones_for_what_it_lacks() {
    assert!(
        known("ionic", SourceKind::HwCounters, "rx_rdma_cnp_pkts")
            .entry
            .width
            .all_ones_is_missing
    );
}

#[test]
fn dscp_has_64_values() {
    assert_eq!(
        known("mlx5_core", SourceKind::Dcb, "dscp63_prio").index,
        Some(Index::Dscp(63))
    );
    assert!(meaning("mlx5_core", SourceKind::Dcb, "dscp64_prio").is_none());
}

#[test]
fn signals_are_found_by_name() {
    for signal in Signal::all() {
        assert_eq!(Signal::from_name(signal.as_str()), Some(signal));
    }
    assert_eq!(Signal::from_name("pfc.rx_pause"), None);
}

#[test]
fn every_counter_of_every_driver_is_found() {
    for driver in catalog::DRIVERS {
        for entry in driver
            .entries
            .iter()
            .filter(|entry| entry.first_index().is_none())
        {
            for name in driver.bound_as {
                let found = known(name, entry.source, entry.name);
                assert!(
                    std::ptr::eq(found.entry, entry),
                    "{}: {} is hidden by another",
                    driver.file,
                    entry.name
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn any_name_is_looked_up_without_a_panic(driver in ".*", counter in ".*") {
        for source in SourceKind::ALL {
            let _ = meaning(&driver, source, &counter);
        }
    }

    #[test]
    fn priorities_are_those_of_the_name(priority in 0u8..8) {
        let found = known("mlx5_core", SourceKind::Ethtool, &format!("tx_prio{priority}_pause"));
        prop_assert_eq!(found.index, Some(Index::Priority(priority)));
    }

    #[test]
    fn the_largest_value_has_all_bits_set(bits in 1u8..=64) {
        let width = catalog::Width { bits, ..catalog::Width::FULL };
        prop_assert_eq!(width.max().count_ones(), u32::from(bits));
        prop_assert_eq!(width.max().trailing_ones(), u32::from(bits));
    }
}
