//! With two thousand nodes, what is not of one node stays small: no panel has more than a thousand series.

use crate::prometheus::{Prometheus, tsdb};
use crate::questions::{Drawn, drawn};
use crate::{common, promql, recorded, rules};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const NODES: u32 = 2_000;
const PORTS: u32 = 8;
const MOST_SERIES: usize = 1_000;
/// Two evaluations of the recording rules.
const TIMES: [u64; 2] = [60, 0];

const CHOSEN: [(&str, &str); 5] = [
    ("$__range", "90s"),
    ("$__rate_interval", "240s"),
    ("$__interval", "60s"),
    ("$cluster", ".*"),
    ("$priority", ".*"),
];

/// Values of the labels by which a rule groups what it records.
fn label_values(label: &str) -> &'static [&'static str] {
    match label {
        "cluster" => &["hall-1", "hall-2", "hall-3", "hall-4"],
        "direction" => &["rx", "tx"],
        "rail" => &["0", "1", "2", "3", "4", "5", "6", "7"],
        "le" => &["0.05", "0.25", "0.5", "0.75", "0.9", "0.95", "0.99", "1", "+Inf"],
        "event" => &[
            "pfc_storm",
            "sustained_pause",
            "link_down",
            "link_flap",
            "cnp_spike",
        ],
        "severity" => &["critical", "warning", "info"],
        "version" => &["0.1.0", "0.2.0"],
        other => panic!("a rule groups by {other}: give it values here"),
    }
}

/// Every combination of the labels that the rule of this name groups by.
fn groups(rules: &str, name: &str) -> Vec<String> {
    let rule = rules
        .split_once(&format!("record: {name}\n"))
        .expect("the name is of a rule")
        .1;
    let by = rule.split_once(" by (").expect("a rule above ports groups").1;
    let labels = by.split_once(')').expect("the labels end").0.split(", ");
    labels.fold(vec![String::new()], |found, label| {
        let with = |rest: &String| {
            label_values(label)
                .iter()
                .map(|value| format!("{rest}{label}=\"{value}\","))
                .collect::<Vec<_>>()
        };
        found.iter().flat_map(with).collect()
    })
}

/// The labels of every port.
fn ports() -> impl Iterator<Item = (u32, String)> {
    (0..NODES * PORTS).map(|at| {
        let (node, port) = (at / PORTS, at % PORTS);
        let labels = format!(
            "cluster=\"hall-{}\",job=\"rocewatch\",instance=\"gpu-{node:04}:14791\",device=\"mlx5_{port}\",port=\"1\",netdev=\"eth{port}\",",
            node % 4 + 1
        );
        (at, labels)
    })
}

fn series_of(name: &str, labels: &str) -> String {
    format!("{name}{{{}}}", labels.trim_end_matches(','))
}

/// Series of all ports under this name, told apart further by these labels; each `one_of` ports has it.
fn of_ports(name: &str, labels: &[&str], one_of: u32) -> Vec<String> {
    let ports = ports().filter(|(at, _)| at % one_of == 0);
    ports
        .flat_map(|(_, port)| {
            labels
                .iter()
                .map(|more| series_of(name, &format!("{port}{more}")))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// All series of a fabric that the dashboards may ask for, by the name of their metric.
fn fabric() -> BTreeMap<String, Vec<String>> {
    let both = ["direction=\"rx\"", "direction=\"tx\""];
    let rules = rules();
    let mut series = BTreeMap::new();
    for name in recorded(&rules) {
        let found = if name.ends_with(":delta1m") {
            of_ports(&name, &[""], 10)
        } else if name.contains(":rocewatch_pfc_pause") && name.starts_with("instance_device") {
            of_ports(&name, &both, 1)
        } else if name.starts_with("instance_device") {
            of_ports(&name, &[""], 1)
        } else {
            groups(&rules, &name)
                .iter()
                .map(|group| series_of(&name, group))
                .collect()
        };
        series.insert(name, found);
    }
    let storms = [
        "direction=\"rx\",priority=\"3\"",
        "direction=\"tx\",priority=\"3\"",
    ];
    let events = [
        "event=\"link_flap\",severity=\"critical\"",
        "event=\"sustained_pause\",severity=\"warning\",direction=\"rx\",priority=\"3\"",
    ];
    for (name, labels, one_of) in [
        ("rocewatch_pfc_storm_active", &storms[..], 1),
        ("rocewatch_event_active", &events, 5),
        ("rocewatch_build_info", &["version=\"0.1.0\""], PORTS),
        ("process_resident_memory_bytes", &[""], PORTS),
        ("scrape_duration_seconds", &[""], PORTS),
    ] {
        series.insert(name.to_owned(), of_ports(name, labels, one_of));
    }
    series
}

/// The fabric as `OpenMetrics`. Everything is 1: all storms and events are open, no order spares anything.
fn open_metrics(now: u64) -> String {
    let mut text = String::new();
    for (name, series) in fabric() {
        let _ = writeln!(text, "# TYPE {name} gauge");
        for series in series {
            for before in TIMES {
                let _ = writeln!(text, "{series} 1 {}", now - before);
            }
        }
    }
    text + "# EOF\n"
}

fn prometheus_with_fabric(now: u64) -> Prometheus {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let file = data.path().join("fabric.txt");
    std::fs::write(&file, open_metrics(now)).expect("the fabric can be written");
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([&file, &tsdb(&data)])
        .output()
        .expect("promtool is installed (Debian package prometheus)");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Prometheus::start("global: {}\n", data)
}

/// How many series the panel gets.
fn series(prometheus: &Prometheus, drawn: &Drawn, now: u64) -> usize {
    let mut found = 0;
    for question in &drawn.questions {
        let mut expr = question.expr.clone();
        for (variable, value) in CHOSEN {
            expr = expr.replace(variable, value);
        }
        let answer = if question.instant {
            prometheus.ask("query", &expr, &[("time", now.to_string())])
        } else {
            let course = [
                ("start", (now - 60).to_string()),
                ("end", now.to_string()),
                ("step", "60".to_owned()),
            ];
            prometheus.ask("query_range", &expr, &course)
        };
        found += answer.len();
    }
    found
}

#[test]
#[ignore = "needs Debian's prometheus: ./x dashboards"]
fn two_thousand_nodes_stay_under_a_thousand_series_a_panel() {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is after 1970")
        .as_secs();
    let prometheus = prometheus_with_fabric(now);
    let known: BTreeSet<_> = fabric().into_keys().collect();
    let of_all_nodes = common::all()
        .iter()
        .flat_map(drawn)
        .filter(|drawn| {
            drawn
                .questions
                .iter()
                .all(|question| !question.expr.contains("$node"))
        })
        .collect::<Vec<_>>();
    assert!(
        of_all_nodes.len() > 30,
        "only {} panels are of all nodes",
        of_all_nodes.len()
    );
    for drawn in &of_all_nodes {
        let series = series(&prometheus, drawn, now);
        assert!(series <= MOST_SERIES, "{}: {series} series", drawn.place);
        let there = |question: &crate::questions::Question| {
            promql::metrics(&question.expr)
                .iter()
                .all(|name| known.contains(name))
        };
        assert!(
            series > 0 || !drawn.questions.iter().any(there),
            "{}: nothing",
            drawn.place
        );
    }
}
