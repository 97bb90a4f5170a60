//! What must hold for every counter in the data files.

use catalog::{DRIVERS, Driver, Entry, Index, Kind, Signal, SourceKind};
use std::collections::{BTreeMap, BTreeSet};

fn entries() -> impl Iterator<Item = (&'static Driver, &'static Entry)> {
    DRIVERS
        .iter()
        .flat_map(|driver| driver.entries.iter().map(move |entry| (driver, entry)))
}

/// Each name that devices are bound to, with all entries that apply to them: the kernel's own unless the driver has an
/// entry of the same name in the same source.
fn by_binding() -> BTreeMap<&'static str, Vec<&'static Entry>> {
    let names: BTreeSet<_> = DRIVERS
        .iter()
        .flat_map(|driver| driver.bound_as)
        .copied()
        .filter(|n| *n != "*")
        .collect();
    let of = |name: &str| -> Vec<_> {
        DRIVERS
            .iter()
            .filter(|driver| driver.bound_as.contains(&name))
            .flat_map(|driver| driver.entries)
            .collect()
    };
    names
        .into_iter()
        .map(|name| {
            let mut all = of(name);
            let own: BTreeSet<_> = all.iter().map(|entry| (entry.source, entry.name)).collect();
            all.extend(
                of("*")
                    .into_iter()
                    .filter(|entry| !own.contains(&(entry.source, entry.name))),
            );
            (name, all)
        })
        .collect()
}

#[test]
fn every_driver_has_its_file() {
    let files: Vec<_> = DRIVERS
        .iter()
        .map(|driver| driver.file.trim_end_matches(".toml"))
        .collect();
    let expected = [
        "bnxt_en",
        "bnxt_re",
        "bnxt_re_oot",
        "efa",
        "erdma",
        "hfi1",
        "hns3",
        "hns_roce",
        "i40e",
        "ice",
        "ionic",
        "ionic_rdma",
        "irdma",
        "kernel",
        "mana",
        "mana_ib",
        "mlx5_core",
        "mlx5_ib",
        "qede",
        "qedr",
        "rxe",
        "siw",
    ];
    assert_eq!(files, expected);
}

#[test]
fn a_driver_without_counters_says_why() {
    for driver in DRIVERS.iter().filter(|driver| driver.entries.is_empty()) {
        assert!(!driver.facts.is_empty(), "{}", driver.file);
    }
}

#[test]
fn every_counter_is_explained_and_cited() {
    for (driver, entry) in entries() {
        let place = format!("{}: {}", driver.file, entry.name);
        assert!(
            entry.meaning.ends_with('.'),
            "{place}: the meaning is no sentence: {}",
            entry.meaning
        );
        assert!(
            !entry.meaning.starts_with(char::is_lowercase),
            "{place}: {}",
            entry.meaning
        );
        assert!(
            entry.meaning.contains(' ') && !entry.meaning.contains('\n'),
            "{place}: {}",
            entry.meaning
        );
        assert!(!entry.cite.is_empty(), "{place} has no source");
        assert!(
            !entry.notes.ends_with(';') && !entry.notes.starts_with(';'),
            "{place}: {}",
            entry.notes
        );
    }
}

#[test]
fn two_signals_are_never_explained_alike() {
    for driver in DRIVERS {
        let mut seen = BTreeMap::new();
        for entry in driver.entries {
            let (signal, name) = *seen.entry(entry.meaning).or_insert((entry.signal, entry.name));
            assert_eq!(
                signal, entry.signal,
                "{}: {name} and {} have the same words",
                driver.file, entry.name
            );
        }
    }
}

#[test]
fn the_direction_is_that_of_the_signal() {
    for (driver, entry) in entries() {
        let words: Vec<_> = entry.signal.as_str().split(['.', '_']).collect();
        let Some(direction) = entry.direction.map(catalog::Direction::as_str) else {
            continue;
        };
        let opposite = if direction == "rx" { "tx" } else { "rx" };
        assert!(
            !words.contains(&opposite),
            "{}: {} is {direction} and carries {}",
            driver.file,
            entry.name,
            entry.signal
        );
    }
}

#[test]
fn a_signal_has_one_base_unit_and_one_kind() {
    let mut first: BTreeMap<Signal, (&str, Kind, &str)> = BTreeMap::new();
    for (driver, entry) in entries() {
        let (base, kind, file) =
            *first
                .entry(entry.signal)
                .or_insert((entry.unit.base().0, entry.kind, driver.file));
        let place = format!(
            "{} {}: {} differs from {file}",
            driver.file, entry.name, entry.signal
        );
        assert_eq!((entry.unit.base().0, entry.kind), (base, kind), "{place}");
    }
}

#[test]
fn of_several_ways_to_a_signal_exactly_one_value_results() {
    for (name, entries) in by_binding() {
        let mut ranks: BTreeMap<(Signal, Option<Index>, u8), Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            ranks
                .entry((entry.signal, entry.first_index(), entry.rank))
                .or_default()
                .push(entry);
        }
        for ((signal, _, rank), same) in ranks {
            let counters: Vec<_> = same.iter().map(|entry| entry.name).collect();
            let parts = same.iter().filter(|entry| entry.summed).count();
            let place = format!("{name}: {signal} at rank {rank} comes from {counters:?}");
            match same.len() {
                1 => assert_eq!(parts, 0, "{place}, a part without the others"),
                all => assert_eq!(
                    parts, all,
                    "{place}: give them ranks, or `summed` if they are parts"
                ),
            }
            let sources: BTreeSet<_> = same.iter().map(|entry| entry.source).collect();
            assert_eq!(sources.len(), 1, "{place}: parts must be read at one instant");
        }
    }
}

#[test]
fn every_signal_has_a_way_of_the_best_rank() {
    for driver in DRIVERS.iter().filter(|driver| driver.name != "*") {
        for name in driver.bound_as {
            let all = &by_binding()[name];
            for entry in driver.entries.iter().filter(|entry| entry.rank > 0) {
                let better = all
                    .iter()
                    .any(|other| other.signal == entry.signal && other.rank < entry.rank);
                assert!(
                    better,
                    "{}: {} has rank {} and nothing is before it",
                    driver.file, entry.name, entry.rank
                );
            }
        }
    }
}

#[test]
fn handled_and_received_notifications_are_never_mixed() {
    let carries = |file: &str, signal: &str| {
        entries()
            .any(|(driver, entry)| driver.file == file && entry.signal.as_str() == signal && !entry.optional)
    };
    for file in [
        "bnxt_re.toml",
        "hns_roce.toml",
        "mana_ib.toml",
        "ionic_rdma.toml",
        "bnxt_re_oot.toml",
    ] {
        assert!(
            carries(file, "cnp.rx") && !carries(file, "cnp.rx_handled"),
            "{file}"
        );
    }
    for file in ["mlx5_ib.toml", "irdma.toml"] {
        assert!(
            carries(file, "cnp.rx_handled") && !carries(file, "cnp.rx"),
            "{file}"
        );
    }
}

#[test]
fn pma_errors_stay_full_and_data_counts_words() {
    for (driver, entry) in entries().filter(|(_, entry)| entry.source == SourceKind::PortCounters) {
        let place = format!("{}: {}", driver.file, entry.name);
        assert_eq!(entry.width.saturates, entry.width.bits < 64, "{place}");
        if entry.name.ends_with("_data") {
            assert_eq!(
                entry.unit.base(),
                (
                    "bytes",
                    catalog::Scale {
                        multiply: 4,
                        decimals: 0
                    }
                ),
                "{place}"
            );
        }
    }
}

#[test]
fn only_ionic_rdma_answers_all_ones_for_what_it_lacks() {
    for (driver, entry) in entries() {
        assert_eq!(
            entry.width.all_ones_is_missing,
            driver.file == "ionic_rdma.toml",
            "{}: {}",
            driver.file,
            entry.name
        );
    }
}

#[test]
fn slow_drivers_say_how_slow() {
    let refresh = |file: &str| {
        DRIVERS
            .iter()
            .find(|driver| driver.file == file)
            .map(|driver| driver.refresh_ms)
    };
    assert_eq!(refresh("bnxt_en.toml"), Some(1000));
    assert_eq!(refresh("bnxt_re.toml"), Some(1000));
    assert_eq!(refresh("bnxt_re_oot.toml"), Some(1000));
    assert_eq!(refresh("mlx5_core.toml"), Some(0));
}

/// A gauge taken for a counter shows a reset at every fall.
#[test]
fn the_gauges_among_the_counters_are_known() {
    let gauges: Vec<_> = entries()
        .filter(|(driver, entry)| driver.name != "*" && entry.kind == Kind::Gauge)
        .filter(|(_, entry)| entry.source != SourceKind::Hwmon)
        .filter(|(_, entry)| !entry.name.starts_with("active_") && !entry.name.starts_with("watermark_"))
        .map(|(driver, entry)| (driver.name, entry.name))
        .collect();
    let expected = [
        ("bnxt_re", "db_fifo_register"),
        ("mana_ib", "num_qps_congested"),
        ("mana_ib", "num_qps_recovered"),
        ("mana_ib", "current_rate"),
        ("mlx5_core", "outbound_pci_stalled_rd"),
        ("mlx5_core", "outbound_pci_stalled_wr"),
    ];
    assert_eq!(gauges, expected);
    let objects = [
        "pds", "ahs", "qps", "rc_qps", "ud_qps", "srqs", "cqs", "mrs", "mws",
    ];
    for name in objects
        .iter()
        .flat_map(|kind| [format!("active_{kind}"), format!("watermark_{kind}")])
    {
        let found = entries().find(|(driver, entry)| driver.name == "bnxt_re" && entry.name == name);
        assert!(
            found.is_some_and(|(_, entry)| entry.kind == Kind::Gauge),
            "{name}"
        );
    }
}

#[test]
fn optional_counters_say_what_switching_them_on_needs() {
    for (driver, entry) in entries().filter(|(_, entry)| entry.optional) {
        assert!(!entry.privilege.is_empty(), "{}: {}", driver.file, entry.name);
    }
}
