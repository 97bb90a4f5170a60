//! The dashboards: the JSON is what is described, holds to the rules, asks for what there is, and shows something.

#![allow(clippy::disallowed_methods)] // tests start processes and read files

#[path = "../../dashboards/src/agent.rs"]
mod agent;
#[path = "../../dashboards/src/common.rs"]
mod common;
#[path = "../../dashboards/src/fabric.rs"]
mod fabric;
#[path = "../../dashboards/src/grafana/mod.rs"]
mod grafana;
#[path = "../../dashboards/src/incident.rs"]
mod incident;
mod lint;
mod live;
#[path = "../../dashboards/src/node.rs"]
mod node;
#[path = "../../dashboards/src/port.rs"]
mod port;
#[path = "../support/prometheus.rs"]
mod prometheus;
mod promql;
mod questions;
mod scale;
#[path = "../support/mod.rs"]
mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Metrics of an agent that are not Rocewatch's own: of its process, and of Prometheus about its scrape.
const NOT_OURS: [&str; 7] = [
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_threads",
    "scrape_duration_seconds",
    "scrape_samples_scraped",
    "up",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn file(uid: &str) -> PathBuf {
    root().join(format!("dashboards/{uid}.json"))
}

/// The dashboard of this name as it is committed.
fn committed(uid: &str) -> Value {
    let text = std::fs::read_to_string(file(uid)).expect("./x docs writes the dashboards");
    serde_json::from_str(&text).expect("a dashboard is JSON")
}

fn rules() -> String {
    std::fs::read_to_string(root().join("deploy/prometheus/rocewatch-recording.yml"))
        .expect("the recording rules are there")
}

#[test]
fn the_json_is_what_is_described() {
    let all = common::all();
    let names: Vec<_> = all
        .iter()
        .map(|dashboard| (dashboard.uid, dashboard.title))
        .collect();
    for dashboard in &all {
        let path = file(dashboard.uid);
        let text = format!("{:#}\n", dashboard.json(&names));
        if std::env::var_os("UPDATE_DASHBOARDS").is_some() {
            std::fs::write(&path, &text).expect("the dashboard can be written");
        }
        assert!(
            std::fs::read_to_string(&path).is_ok_and(|found| found == text),
            "{} is not what dashboards/src describes: run ./x docs",
            path.display()
        );
    }
}

#[test]
fn the_dashboards_hold_to_the_rules() {
    let uids: Vec<_> = common::all().iter().map(|dashboard| dashboard.uid).collect();
    let faults: Vec<_> = uids
        .iter()
        .flat_map(|uid| lint::faults(&committed(uid), &uids))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Every name that a series of a live family can have.
fn contract() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for family in catalog::FAMILIES {
        let name = format!("rocewatch_{}", family.name);
        match family.kind {
            catalog::FamilyKind::Counter => names.extend([format!("{name}_total")]),
            catalog::FamilyKind::Gauge => names.extend([name]),
            catalog::FamilyKind::Histogram => {
                names.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
            }
        }
    }
    names
}

fn recorded(rules: &str) -> BTreeSet<String> {
    rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- record: "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_metric_is_in_the_contract() {
    let rules = rules();
    let mut known = contract();
    known.extend(NOT_OURS.map(str::to_owned));
    for line in rules
        .lines()
        .filter(|line| !line.trim_start().starts_with(['#', '-']))
    {
        for name in promql::metrics(line) {
            let ours = name.starts_with("rocewatch");
            assert!(
                !ours || known.contains(&name),
                "recording rules: {name} is no metric"
            );
        }
    }
    known.extend(recorded(&rules));
    for uid in common::all().map(|dashboard| dashboard.uid) {
        for (place, expr) in lint::expressions(&committed(uid)) {
            let names = promql::metrics(&expr);
            assert!(!names.is_empty(), "{uid}, {place}: no metric in {expr}");
            for name in names {
                assert!(known.contains(&name), "{uid}, {place}: {name} is no metric");
            }
        }
    }
}

#[test]
fn every_recording_rule_is_drawn() {
    let drawn: BTreeSet<_> = common::all()
        .iter()
        .flat_map(|dashboard| lint::expressions(&committed(dashboard.uid)))
        .flat_map(|(_, expr)| promql::metrics(&expr))
        .collect();
    let rules = rules();
    let used_by_rules: BTreeSet<_> = rules
        .lines()
        .filter(|line| !line.trim_start().starts_with("- record"))
        .flat_map(promql::metrics)
        .collect();
    let idle: Vec<_> = recorded(&rules)
        .into_iter()
        .filter(|name| !drawn.contains(name) && !used_by_rules.contains(name))
        .collect();
    assert!(idle.is_empty(), "recorded and not drawn: {idle:?}");
}
