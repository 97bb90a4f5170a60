//! The alert rules, the routes of Alertmanager and the runbook: that they agree with each other and with the contract, that each
//! rule's unit test would notice a spoilt rule, and that a storm becomes one page.

#![allow(clippy::disallowed_methods)] // tests start processes and read files
#![allow(clippy::print_stdout)] // delays for whoever reads the test's output

#[path = "../support/prometheus.rs"]
mod prometheus;
#[path = "../support/receiver.rs"]
mod receiver;
#[path = "../support/mod.rs"]
mod support;

mod alertmanager;
mod book;
mod mutants;
mod storm;

use book::{Rule, deploy, recordings, rules};
use signals::detect::EVENTS;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a tool to its end; what it says where it finds fault.
fn complaint(program: &str, arguments: &[&str], files: &[PathBuf]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .args(files)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; ./x rules installs it"));
    (!output.status.success()).then(|| {
        format!(
            "{program} {arguments:?}:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// Files of a folder with this beginning and end, in order.
fn files(folder: &Path, begin: &str, end: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("names are text");
            name.starts_with(begin) && name.ends_with(end)
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "nothing in {}", folder.display());
    found
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn runbook() -> String {
    text(&deploy().join("../docs/runbook.md"))
}

/// The runbook's sections: heading and text.
fn sections(runbook: &str) -> Vec<(&str, &str)> {
    runbook
        .split("\n## ")
        .skip(1)
        .map(|section| section.split_once('\n').expect("a section has a text"))
        .collect()
}

/// A configuration without its blocks `kubernetes_sd_configs`.
fn without_kubernetes(config: &str) -> String {
    let mut inside = None;
    let kept = config.lines().filter(|line| {
        let indent = line.len() - line.trim_start_matches([' ', '-']).len();
        match inside {
            Some(block) if indent > block || line.trim().is_empty() || line.trim_start().starts_with('#') => {
                return false;
            }
            _ => inside = None,
        }
        if line.contains("kubernetes_sd_configs:") {
            inside = Some(indent);
            return false;
        }
        true
    });
    let text = kept.collect::<Vec<_>>().join("\n") + "\n";
    text.replace("  alertmanagers:\n", "  alertmanagers:\n  - static_configs: []\n")
}

#[test]
#[ignore = "needs Debian's prometheus and prometheus-alertmanager: ./x rules"]
fn the_tools_find_no_fault() {
    let prometheus = deploy().join("prometheus");
    let complaints: Vec<_> = [
        complaint(
            "promtool",
            &["check", "rules"],
            &files(&prometheus, "rocewatch-", ".yml"),
        ),
        complaint(
            "promtool",
            &["check", "config"],
            &[prometheus.join("prometheus.yml")],
        ),
        complaint(
            "promtool",
            &["check", "config"],
            &[prometheus.join("scrape-static.yml")],
        ),
        complaint(
            "promtool",
            &["test", "rules"],
            &files(&prometheus.join("tests"), "", ".yml"),
        ),
        complaint(
            "amtool",
            &["check-config"],
            &[deploy().join("alertmanager/alertmanager.yml")],
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
#[ignore = "needs Debian's prometheus-alertmanager: ./x rules"]
fn severities_lead_to_their_receivers() {
    let config = deploy().join("alertmanager/alertmanager.yml");
    let config = format!("--config.file={}", config.display());
    for (severity, receiver) in [("critical", "pager"), ("warning", "tickets"), ("info", "nobody")] {
        let (expected, label) = (
            format!("--verify.receivers={receiver}"),
            format!("severity={severity}"),
        );
        let complaint = complaint(
            "amtool",
            &["config", "routes", "test", &config, &expected, &label],
            &[],
        );
        assert_eq!(complaint, None);
    }
}

/// Debian builds Prometheus without Kubernetes, so that its promtool does not know that part of the configuration.
#[test]
#[ignore = "needs Debian's prometheus: ./x rules"]
fn the_tools_find_no_fault_with_what_kubernetes_targets_become() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let config = folder.path().join("prometheus.yml");
    let rest = without_kubernetes(&text(&deploy().join("prometheus/scrape-kubernetes.yml")));
    assert!(
        rest.contains("__meta_kubernetes_pod_node_name") && !rest.contains("attach_metadata"),
        "{rest}"
    );
    std::fs::write(&config, rest).expect("the configuration can be written");
    assert_eq!(complaint("promtool", &["check", "config"], &[config]), None);
}

#[test]
#[ignore = "needs Debian's prometheus: ./x rules"]
fn every_alert_tells_what_a_reader_needs() {
    let runbook = runbook();
    let headings: Vec<_> = sections(&runbook)
        .into_iter()
        .map(|(heading, _)| heading)
        .collect();
    let mut alerts = Vec::new();
    for rule in rules().iter().filter(|rule| rule.is_alert) {
        let name = rule.name.as_str();
        let severity = rule.labels.get("severity").map_or("", String::as_str);
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}: {severity}"
        );
        let annotation = |key: &str| rule.annotations.get(key).map_or("", String::as_str);
        assert!(!annotation("summary").is_empty(), "{name} has no summary");
        // What is absent has no value.
        let tells = annotation("description").contains("{{") || rule.query.starts_with("absent(");
        assert!(tells, "{name} tells no values");
        assert!(
            annotation("runbook_url").ends_with(&format!("#{}", name.to_lowercase())),
            "{name}: {}",
            annotation("runbook_url")
        );
        let dashboard = annotation("dashboard");
        // The time is from half an hour before; nothing is known of what is to come.
        assert!(
            dashboard.contains("from=") && dashboard.ends_with("&to=now"),
            "{name} links to no time: {dashboard}"
        );
        assert!(
            dashboard.contains("var-node=") || name == "RocewatchAbsent",
            "{name} links to no node: {dashboard}"
        );
        leads_somewhere(dashboard);
        alerts.push(name.to_owned());
    }
    assert_eq!(alerts, headings, "each alert has its section, in the same order");
}

/// A link is to a dashboard that there is, and the variables that it sets are the dashboard's.
fn leads_somewhere(link: &str) {
    let after = |begin: &'static str| {
        link.split(begin)
            .skip(1)
            .filter_map(|rest| rest.split(['?', '=']).next())
    };
    let uid = after("/d/").next().expect("a link leads to a dashboard");
    let dashboard = text(&deploy().join(format!("../dashboards/{uid}.json")));
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("a dashboard is JSON");
    assert_eq!(dashboard["uid"], uid);
    let variables = dashboard["templating"]["list"].as_array();
    let variables = variables.expect("a dashboard has variables");
    for name in after("var-") {
        assert!(
            variables.iter().any(|variable| variable["name"] == name),
            "{uid} has no variable {name}"
        );
    }
}

/// What the runbook says of an event is said by the table of events; it links there, and what it links to is what the rule asks for.
#[test]
#[ignore = "needs Debian's prometheus: ./x rules"]
fn the_runbook_leads_to_the_events_that_a_rule_asks_for() {
    let runbook = runbook();
    let rules = rules();
    let mut led = BTreeSet::new();
    for (heading, section) in sections(&runbook) {
        let links: BTreeSet<_> = section
            .split("(events.md#")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .collect();
        let rule = rules
            .iter()
            .find(|rule| rule.name == heading)
            .expect("a section is of an alert");
        for event in rule.values_of("event") {
            assert!(links.contains(event.as_str()), "{heading} leaves out {event}");
        }
        led.extend(links);
    }
    let kinds: BTreeSet<_> = EVENTS.iter().map(|info| info.kind.as_str()).collect();
    assert_eq!(led, kinds, "each event is behind an alert, and no other is");
}

#[test]
#[ignore = "needs Debian's prometheus: ./x rules"]
fn every_metric_is_in_the_contract_and_in_every_profile() {
    assert_eq!(not_always_there(&rules()), Vec::<String>::new());
}

/// The distributions of samples are most of what an agent shows, so that `minimal` leaves them out; the rest of the view of a
/// fabric is drawn with every profile. `docs/scale.md` says so.
#[test]
#[ignore = "needs Debian's prometheus: ./x rules"]
fn the_view_of_a_fabric_lacks_the_distributions_alone_in_the_smallest_profile() {
    assert_eq!(
        not_always_there(&recordings()),
        ["pause", "utilization"].map(|of| format!(
            "cluster:rocewatch_sampled_{of}_ratio_bucket:rate5m asks for rocewatch_sampled_{of}_ratio_bucket"
        ))
    );
}

/// Rules with what they ask for that is not exposed, or not with the profile `minimal`, sorted.
fn not_always_there(rules: &[Rule]) -> Vec<String> {
    let recorded: BTreeSet<_> = rules
        .iter()
        .filter(|rule| !rule.is_alert)
        .map(|rule| rule.name.as_str())
        .collect();
    let is_there =
        |name: &str| recorded.contains(name) || family(name).is_some_and(|family| family.essential);
    let mut lacking: Vec<_> = rules
        .iter()
        .flat_map(|rule| rule.metrics().into_iter().map(|name| (&rule.name, name)))
        .filter(|(_, name)| !is_there(name))
        .map(|(rule, name)| format!("{rule} asks for {name}"))
        .collect();
    lacking.sort();
    lacking
}

/// The family that has series of this name.
fn family(name: &str) -> Option<&'static catalog::Family> {
    let name = name.strip_prefix(catalog::PREFIX)?;
    let exposed = |family: &&catalog::Family| match family.kind {
        catalog::FamilyKind::Counter => name.strip_suffix("_total") == Some(family.name),
        catalog::FamilyKind::Gauge => name == family.name,
        catalog::FamilyKind::Histogram => ["_bucket", "_sum", "_count"]
            .iter()
            .any(|suffix| name.strip_suffix(suffix) == Some(family.name)),
    };
    catalog::FAMILIES
        .iter()
        .filter(|family| family.status == catalog::Status::Live)
        .find(exposed)
}

#[test]
#[ignore = "needs Debian's prometheus: ./x rules"]
fn a_spoilt_rule_fails_its_unit_test() {
    let rules = rules();
    let unnoticed: Vec<_> = rules
        .iter()
        .filter(|rule| rule.is_alert)
        .flat_map(|rule| mutants::unnoticed(&rules, rule))
        .collect();
    assert!(unnoticed.is_empty(), "no test fails of\n{}", unnoticed.join("\n"));
}
