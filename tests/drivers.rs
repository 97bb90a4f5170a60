//! NICs of every driver, each on a machine of its own: whatever the driver calls its counters, the same metrics show them.
//!
//! A folder under `tests/fixtures/drivers` is a machine; its `capture.toml` says where the names come from, and its
//! `expected.txt` is what has to be shown of it: every counter and nothing else, so that what a driver cannot tell is absent.
//! Where there is a `rocewatch.toml`, the daemon is configured by it.

#![allow(clippy::disallowed_methods)] // tests read files

mod support;
#[path = "support/tree.rs"]
mod tree;

use catalog::{DRIVERS, FAMILIES, Origin};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use support::Daemon;

fn folder(machine: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/drivers")
        .join(machine)
}

fn text_of(machine: &str, file: &str) -> String {
    let path = folder(machine).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What is compared: what the NIC counts and who it is, not what is derived over a time or told of the agent.
fn is_compared(line: &str) -> bool {
    let name = line.split('{').next().unwrap_or(line);
    FAMILIES.iter().any(|family| {
        let compared = matches!(family.origin, Origin::Counters | Origin::Raw) || family.name == "port_info";
        compared && name.trim_end_matches("_total") == format!("rocewatch_{}", family.name)
    })
}

/// The lines of `expected.txt` that files alone give, and the series of those that need more than a sysfs.
fn from_files(right: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let mut files = true;
    let (mut right_lines, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    for line in right.lines() {
        if line.starts_with('#') {
            files = !["ethtool", "settings", "derived"]
                .iter()
                .any(|part| line.ends_with(part));
        } else if files {
            right_lines.insert(line);
        } else {
            elsewhere.insert(series(line));
        }
    }
    (right_lines, elsewhere)
}

fn series(line: &str) -> &str {
    line.rsplit_once(' ').map_or(line, |(series, _)| series)
}

/// The lines of `expected.txt` and the daemon's own have to be the same.
fn shows_what_is_right(machine: &str) {
    let sysfs = tree::lay_out_text(&text_of(machine, "sys.txt"));
    let mut arguments = vec!["run".into(), "--sysfs".into(), sysfs.path().to_path_buf()];
    let config = folder(machine).join("rocewatch.toml");
    if config.exists() {
        arguments.extend(["--config".into(), config]);
    }
    let arguments: Vec<_> = arguments
        .iter()
        .map(|argument| argument.to_str().expect("paths are text"))
        .collect();
    let daemon = Daemon::start(&arguments);
    daemon.wait_until_ready();
    daemon.wait_for("every source is read", Duration::from_secs(10), |metrics| {
        metrics
            .all("rocewatch_samples_total", &[])
            .all(|(_, samples)| samples >= 1.0)
    });
    let exposition = daemon.text("/metrics");
    let right = text_of(machine, "expected.txt");
    let (right, elsewhere) = from_files(&right);
    let found: BTreeSet<_> = exposition
        .lines()
        .filter(|line| is_compared(line) && !elsewhere.contains(series(line)))
        .collect();
    let missing: Vec<_> = right.difference(&found).collect();
    let made_up: Vec<_> = found.difference(&right).collect();
    assert!(
        missing.is_empty() && made_up.is_empty(),
        "{machine}: missing {missing:#?}, not in expected.txt {made_up:#?}\n{}",
        daemon.log()
    );
}

macro_rules! machines {
    ($($(#[$attribute:meta])* $test:ident: $machine:literal,)*) => {
        const MACHINES: &[&str] = &[$($machine),*];
        $(
            $(#[$attribute])*
            #[test]
            fn $test() {
                shows_what_is_right($machine);
            }
        )*
    };
}

machines! {
    bnxt: "bnxt",
    #[ignore = "EFA calls its link layer Unknown, and the host reads no port of an unknown link layer"]
    efa: "efa",
    erdma: "erdma",
    hns: "hns",
    i40e: "i40e",
    infiniband_is_listed_and_not_read: "infiniband",
    ionic: "ionic",
    irdma: "irdma",
    mana: "mana",
    mlx5: "mlx5",
    mlx5_bond: "mlx5-bond",
    mlx5_functions_have_nothing_of_the_port: "mlx5-functions",
    mlx5_switchdev: "mlx5-switchdev",
    qede: "qede",
    soft_roce_and_iwarp: "software",
    names_are_shown_as_they_are: "unknown",
}

#[test]
fn every_machine_is_tested() {
    let folders = std::fs::read_dir(folder("")).expect("the fixtures are there");
    let folders: BTreeSet<_> = folders
        .map(|entry| {
            let name = entry.expect("the fixtures can be listed").file_name();
            name.into_string().expect("names are text")
        })
        .collect();
    assert_eq!(folders, MACHINES.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn every_vocabulary_of_the_catalogue_has_a_machine() {
    let machines: Vec<_> = MACHINES.iter().map(|machine| everything(machine)).collect();
    for driver in DRIVERS.iter().filter(|driver| driver.name != "*") {
        let shown = machines.iter().any(|text| {
            let bound = driver.bound_as.iter().any(|name| text.contains(name));
            bound
                && (driver.entries.is_empty() || driver.entries.iter().any(|entry| text.contains(entry.name)))
        });
        assert!(shown, "{} has no machine", driver.file);
    }
}

/// All text of a machine that stands for its kernel.
fn everything(machine: &str) -> String {
    let statistics = std::fs::read_dir(folder(machine).join("netdev"))
        .into_iter()
        .flatten();
    let statistics = statistics.map(|netdev| {
        let path = netdev
            .expect("the fixtures can be listed")
            .path()
            .join("ethtool.1");
        std::fs::read_to_string(path).expect("a netdev has statistics")
    });
    std::iter::once(text_of(machine, "sys.txt"))
        .chain(statistics)
        .collect()
}
