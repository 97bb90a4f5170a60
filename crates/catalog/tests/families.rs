//! What must hold for every metric family.

use catalog::{
    DRIVERS, FAMILIES, Family, FamilyKind, Index, Meaning, Origin, Signal, Status, UNEXPOSED, family,
};
use std::collections::BTreeSet;

fn base_units(signal: Signal) -> BTreeSet<&'static str> {
    let entries = DRIVERS.iter().flat_map(|driver| driver.entries);
    entries
        .filter(|entry| entry.signal == signal)
        .map(|entry| entry.unit.base().0)
        .collect()
}

#[test]
fn the_contract_is_kept() {
    use FamilyKind::{Counter, Gauge, Histogram};
    let contract: &[(&str, FamilyKind, &[&str])] = &[
        (
            "port_info",
            Gauge,
            &[
                "driver",
                "firmware",
                "board",
                "pci",
                "numa_node",
                "link_layer",
                "rail",
                "gpu",
            ],
        ),
        ("port_up", Gauge, &[]),
        ("port_speed_bytes_per_second", Gauge, &[]),
        ("port_bytes", Counter, &["direction"]),
        ("port_packets", Counter, &["direction"]),
        ("rdma_bytes", Counter, &["direction"]),
        ("rdma_packets", Counter, &["direction"]),
        ("priority_bytes", Counter, &["direction", "priority"]),
        ("priority_packets", Counter, &["direction", "priority"]),
        ("port_utilization_ratio", Gauge, &["direction"]),
        ("sampled_utilization_ratio", Histogram, &["direction"]),
        ("pfc_frames", Counter, &["direction", "priority"]),
        ("pfc_pause_seconds", Counter, &["direction", "priority"]),
        ("pfc_pause_transitions", Counter, &["direction", "priority"]),
        ("pfc_pause_ratio", Gauge, &["direction", "priority"]),
        ("sampled_pause_ratio", Histogram, &["direction", "priority"]),
        ("pfc_storm_active", Gauge, &["direction", "priority"]),
        ("pause_frames", Counter, &["direction"]),
        ("pause_seconds", Counter, &["direction"]),
        ("ecn_marked_packets", Counter, &[]),
        ("cnp_sent", Counter, &[]),
        ("cnp_received", Counter, &[]),
        ("cnp_handled", Counter, &[]),
        ("cnp_ignored", Counter, &[]),
        ("roce_errors", Counter, &["error"]),
        ("drops", Counter, &["direction", "reason"]),
        ("priority_drops", Counter, &["direction", "priority"]),
        ("link_down_events", Counter, &[]),
        ("link_errors", Counter, &["error"]),
        ("fec_corrected_bits", Counter, &[]),
        ("fec_corrected_blocks", Counter, &[]),
        ("fec_uncorrectable_blocks", Counter, &[]),
        ("temperature_celsius", Gauge, &["sensor"]),
        ("module_voltage_volts", Gauge, &[]),
        ("module_tx_bias_amperes", Gauge, &["lane"]),
        ("optical_power_watts", Gauge, &["direction", "lane"]),
        ("rdma_async_events", Counter, &["event"]),
        ("pcie_stalled_ratio", Gauge, &["direction"]),
        ("pcie_errors", Counter, &["error"]),
        ("hw_counter", Counter, &["counter"]),
        ("ethtool_counter", Counter, &["counter"]),
        ("port_counter", Counter, &["counter"]),
        (
            "qp_counter",
            Counter,
            &["comm", "pid", "qp_type", "cntn", "counter"],
        ),
        ("qp_gauge", Gauge, &["comm", "pid", "qp_type", "cntn", "counter"]),
        ("events", Counter, &["event", "severity", "direction", "priority"]),
        (
            "event_active",
            Gauge,
            &["event", "severity", "direction", "priority"],
        ),
        ("doctor_finding", Gauge, &["check", "severity"]),
    ];
    for (name, kind, own) in contract {
        let family = family(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(family.kind, *kind, "{name}");
        let labels: Vec<_> = ["device", "port", "netdev"].iter().chain(own.iter()).collect();
        assert_eq!(family.labels.iter().collect::<Vec<_>>(), labels, "{name}");
    }
}

#[test]
fn the_agent_watches_itself() {
    let own = [
        "build_info",
        "up_since_seconds",
        "source_state",
        "source_stalled",
        "source_frozen",
        "source_full_counters",
        "source_interval_seconds",
        "source_read_seconds",
        "source_errors",
        "samples",
        "samples_missed",
        "ring_rows",
        "series",
        "series_left_out",
        "resets",
        "samples_implausible",
        "http_requests",
        "config_reloads",
        "web_config_reloads",
        "tls_refused",
        "push_sent",
        "push_dropped",
        "push_failures",
        "push_waiting",
        "push_waiting_bytes",
        "push_newest_sent_seconds",
        "expositions",
        "archive_bytes",
        "archive_oldest_seconds",
        "archive_paused",
        "archive_rows",
        "archive_lost_rows",
        "archive_damages",
        "archive_write_errors",
    ];
    let names: Vec<_> = FAMILIES
        .iter()
        .filter(|f| f.origin == Origin::Agent)
        .map(|f| f.name)
        .collect();
    assert_eq!(names, own);
}

#[test]
fn names_are_unique_and_valid() {
    let names: BTreeSet<_> = FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!(names.len(), FAMILIES.len());
    for name in names {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        assert!(
            !name.ends_with("_total") && !name.starts_with("rocewatch_"),
            "{name}"
        );
    }
}

#[test]
fn labels_are_unique_and_valid() {
    for Family { name, labels, .. } in FAMILIES {
        let unique: BTreeSet<_> = labels.iter().collect();
        assert_eq!(unique.len(), labels.len(), "{name}");
        for label in *labels {
            let valid = label.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !label.starts_with('_');
            assert!(
                valid && !["le", "quantile", "job", "instance"].contains(label),
                "{name}: {label}"
            );
        }
    }
}

#[test]
fn help_is_a_sentence_in_one_line() {
    for Family { name, help, .. } in FAMILIES {
        assert!(
            help.ends_with('.') && help.len() > 20 && !help.contains('\n'),
            "{name}: {help}"
        );
        assert!(
            help.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()),
            "{name}: {help}"
        );
    }
}

#[test]
fn units_are_base_units_and_end_the_name() {
    let units = [
        "",
        "bytes",
        "bytes_per_second",
        "seconds",
        "ratio",
        "bits",
        "packets",
        "frames",
        "blocks",
        "celsius",
        "volts",
        "amperes",
        "watts",
    ];
    for family in FAMILIES {
        let Family { name, unit, .. } = family;
        assert!(units.contains(unit), "{name}: {unit}");
        assert!(name.ends_with(unit), "{name} does not end in {unit}");
        for foreign in [
            "_ms",
            "_us",
            "milliseconds",
            "microseconds",
            "percent",
            "words",
            "gbps",
            "megabits",
        ] {
            assert!(!name.contains(foreign), "{name}");
        }
        for suffix in ["bytes", "seconds", "ratio", "bits", "bytes_per_second"] {
            assert!(
                !name.ends_with(&format!("_{suffix}")) || !unit.is_empty(),
                "{name} has no unit"
            );
        }
    }
}

#[test]
fn a_family_has_the_base_unit_of_its_signals() {
    for family in FAMILIES {
        for from in family.from {
            for base in base_units(from.signal) {
                let fits = match family.unit {
                    "bytes" | "bytes_per_second" | "seconds" | "ratio" | "bits" | "packets" | "frames"
                    | "celsius" | "volts" | "amperes" | "watts" => base == family.unit,
                    "blocks" => base == "code words",
                    _ => !["bytes", "bytes_per_second", "seconds", "ratio", "undocumented"].contains(&base),
                };
                assert!(fits, "{} takes {} in {base}", family.name, from.signal);
            }
        }
    }
}

#[test]
fn what_stands_without_signals_says_where_it_comes_from() {
    for family in FAMILIES {
        assert_eq!(
            family.from.is_empty(),
            family.origin != Origin::Counters,
            "{}",
            family.name
        );
    }
}

#[test]
fn no_two_signals_of_a_family_make_the_same_series() {
    for family in FAMILIES {
        let mut seen = BTreeSet::new();
        for from in family.from {
            assert!(
                seen.insert(from.labels),
                "{}: {} has the labels of another",
                family.name,
                from.signal
            );
        }
    }
}

#[test]
fn signals_and_index_together_fill_every_label() {
    for family in FAMILIES.iter().filter(|family| family.origin == Origin::Counters) {
        for from in family.from {
            let fixed = from
                .labels
                .iter()
                .map(|(label, _)| *label)
                .chain(family.index_label());
            let filled: BTreeSet<_> = ["device", "port", "netdev"].into_iter().chain(fixed).collect();
            assert_eq!(
                filled,
                family.labels.iter().copied().collect(),
                "{}: {}",
                family.name,
                from.signal
            );
        }
    }
}

#[test]
fn directions_of_labels_are_those_of_the_signal() {
    for family in FAMILIES {
        for from in family.from {
            let words: Vec<_> = from.signal.as_str().split(['.', '_']).collect();
            for (label, value) in from.labels {
                let opposite = if *value == "rx" { "tx" } else { "rx" };
                assert!(
                    *label != "direction" || !words.contains(&opposite),
                    "{}: {}",
                    family.name,
                    from.signal
                );
            }
        }
    }
}

#[test]
fn every_counter_goes_somewhere_or_is_said_not_to() {
    for driver in DRIVERS {
        for entry in driver.entries {
            let meaning = Meaning {
                entry,
                index: entry.first_index(),
            };
            let taken = FAMILIES
                .iter()
                .filter(|family| family.takes(meaning.signal(), meaning.index).is_some())
                .count();
            let unexposed = UNEXPOSED.iter().any(|(signal, _)| *signal == entry.signal);
            let by_class = matches!(meaning.index, Some(Index::TrafficClass(_) | Index::Queue(_)));
            let place = format!("{}: {} ({})", driver.file, entry.name, entry.signal);
            assert!(taken <= 1, "{place} goes to {taken} families");
            assert!(
                taken == 1 || unexposed || by_class,
                "{place} goes to no family and no reason is given"
            );
            assert!(
                taken == 0 || !unexposed,
                "{place} is exposed, and listed as unexposed"
            );
        }
    }
}

#[test]
fn every_unexposed_signal_stands_once_with_a_reason() {
    let signals: BTreeSet<_> = UNEXPOSED.iter().map(|(signal, _)| *signal).collect();
    assert_eq!(signals.len(), UNEXPOSED.len());
    assert!(UNEXPOSED.iter().all(|(_, reason)| reason.len() > 20));
}

#[test]
fn what_is_planned_is_known() {
    let planned: Vec<_> = FAMILIES
        .iter()
        .filter(|f| f.status == Status::Planned)
        .map(|f| f.name)
        .collect();
    assert_eq!(planned, Vec::<&str>::new());
}

#[test]
fn the_index_decides_the_family() {
    let family_of = |driver: &str, counter: &str| {
        let meaning = catalog::meaning(driver, catalog::SourceKind::Ethtool, counter).expect(counter);
        FAMILIES
            .iter()
            .find(|family| family.takes(meaning.signal(), meaning.index).is_some())
            .map(|family| family.name)
    };
    assert_eq!(family_of("mlx5_core", "rx_bytes_phy"), Some("port_bytes"));
    assert_eq!(family_of("mlx5_core", "rx_prio3_bytes"), Some("priority_bytes"));
    assert_eq!(family_of("mlx5_core", "rx_discards_phy"), Some("drops"));
    assert_eq!(
        family_of("mlx5_core", "rx_prio3_discards"),
        Some("priority_drops")
    );
    assert_eq!(
        family_of("mlx5_core", "rx_err_lane_2_phy"),
        Some("link_lane_errors")
    );
    assert_eq!(family_of("bnxt_en", "rx_bytes_cos3"), None);
    assert_eq!(family_of("mana", "hc_tc1_rx_byte_phy"), None);
    assert_eq!(
        family_of("ice", "rx_priority_3_xoff.nic"),
        Some("pfc_xoff_frames")
    );
}

#[test]
fn exposed_names_have_prefix_and_suffix() {
    let name = |family_name| family(family_name).expect(family_name).exposed_name();
    assert_eq!(name("pfc_pause_seconds"), "rocewatch_pfc_pause_seconds_total");
    assert_eq!(name("pfc_pause_ratio"), "rocewatch_pfc_pause_ratio");
    assert_eq!(name("source_read_seconds"), "rocewatch_source_read_seconds");
}

#[test]
fn families_of_one_section_stand_together() {
    let mut sections: Vec<_> = FAMILIES.iter().map(|family| family.section).collect();
    sections.dedup();
    let unique: BTreeSet<_> = sections.iter().collect();
    assert_eq!(unique.len(), sections.len(), "{sections:?}");
}
