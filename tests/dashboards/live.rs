//! Every expression runs against a Prometheus that scraped the simulated servers, and gives something.

use crate::common;
use crate::grafana::Scene;
use crate::prometheus::Prometheus;
use crate::questions::{Drawn, Question, drawn, values};
use crate::support::Daemon;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Storms last from second 10 to 30 of each minute, and links flap from 10 to 18. The shown time begins between the first ones
/// and the second, while all is well, and ends after the second.
const WATCHED: u64 = 102;
const SHOWN: u64 = 65;
/// What is not there then is looked for once more at the same time of the next minutes: a machine that is short of time samples
/// less, and a detector waits for samples.
const ROUNDS: u64 = 3;
const MINUTE: u64 = 60;

/// Grafana's variables, as they stand when somebody looks at that time.
const CHOSEN: [(&str, &str); 6] = [
    ("${__from}", "FROM000"),
    ("$__range", "65s"),
    ("$__rate_interval", "8s"),
    ("$__interval", "2s"),
    ("$quiet", "8s"),
    ("$cluster", ".*"),
];

/// The name of a scene as a node.
fn node(scene: Scene) -> String {
    format!("{}-{}", scene.scenario, scene.nic)
}

fn filled(question: &Question, from: u64) -> String {
    let mut expr = question.expr.clone();
    for (variable, value) in CHOSEN {
        expr = expr.replace(variable, value);
    }
    expr.replace("FROM", &from.to_string())
        .replace("$node", &node(question.scene))
        .replace("$device", question.scene.device)
        .replace("$ports", question.scene.device)
        .replace("$priority", ".*")
}

/// Scrapes every server each second. All but one have a label `cluster`, which need not be there.
fn config(servers: &BTreeMap<String, Daemon>) -> String {
    let mut config = String::from(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\nscrape_configs:\n- job_name: rocewatch\n  static_configs:\n",
    );
    for (name, server) in servers {
        let cluster = if name.starts_with("incast") { "" } else { "hall" };
        let _ = writeln!(
            config,
            "  - {{targets: ['{}'], labels: {{instance: '{name}', cluster: '{cluster}'}}}}",
            server.address()
        );
    }
    config
}

/// The rules with shorter times: what they take in five minutes is to be seen within one.
fn hastened(rules: &str) -> String {
    rules
        .replace("interval: 1m", "interval: 2s")
        .replace("offset 1m", "offset 2s")
        .replace("[5m]", "[10s]")
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is after 1970")
        .as_secs()
}

/// The values of the answer. What is only asked for a moment may be looked at in any of the shown time: a storm is over at its end.
fn answer(prometheus: &Prometheus, question: &Question, to: u64) -> Vec<f64> {
    let from = to - SHOWN;
    let expr = filled(question, from);
    if !question.instant {
        let course = [
            ("start", from.to_string()),
            ("end", to.to_string()),
            ("step", "2".to_owned()),
        ];
        return values(&prometheus.ask("query_range", &expr, &course)).collect();
    }
    let mut moments = (from..=to).rev().step_by(8).map(|time| {
        values(&prometheus.ask("query", &expr, &[("time", time.to_string())])).collect::<Vec<_>>()
    });
    moments.find(|values| !values.is_empty()).unwrap_or_default()
}

/// What is wrong with it: a question without an answer, or nothing but zeros.
fn faults(prometheus: &Prometheus, drawn: &Drawn, to: u64) -> Vec<String> {
    let mut faults = Vec::new();
    let mut moves = drawn.quiet;
    for question in &drawn.questions {
        let values = answer(prometheus, question, to);
        moves |= values.iter().any(|value| *value != 0.0);
        if values.is_empty() {
            let expr = filled(question, to - SHOWN);
            faults.push(format!(
                "{}: nothing on {} from {expr}",
                drawn.place,
                node(question.scene)
            ));
        }
    }
    if !moves {
        faults.push(format!("{}: nothing but zeros", drawn.place));
    }
    faults
}

/// What is off unless somebody asks for it, on every server.
const ASKED_FOR: &str = "[sampling]\nmodule = \"10s\"\n";

fn servers(drawn: &[Drawn], folder: &Path) -> BTreeMap<String, Daemon> {
    let config = folder.join("rocewatch.toml");
    std::fs::write(&config, ASKED_FOR).expect("the configuration can be written");
    let config = config.to_str().expect("temporary folders have simple names");
    let scenes: BTreeSet<_> = drawn
        .iter()
        .flat_map(|drawn| &drawn.questions)
        .map(|question| (node(question.scene), question.scene.scenario, question.scene.nic))
        .collect();
    let start = |(name, scenario, nic): (String, _, _)| {
        let state = folder.join(&name);
        let state = state.to_str().expect("temporary folders have simple names");
        let server = Daemon::start(&[
            "demo",
            "--scenario",
            scenario,
            "--nic",
            nic,
            "--state",
            state,
            "--config",
            config,
        ]);
        (name, server)
    };
    scenes.into_iter().map(start).collect()
}

#[test]
#[ignore = "needs Debian's prometheus: ./x dashboards"]
fn every_expression_gives_something_where_it_should() {
    let drawn: Vec<_> = common::all().iter().flat_map(drawn).collect();
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let servers = servers(&drawn, data.path());
    std::fs::write(data.path().join("rules.yml"), hastened(&crate::rules()))
        .expect("the rules can be written");
    let prometheus = Prometheus::start(&config(&servers), data);
    let began = now();
    let mut open: Vec<_> = drawn.iter().collect();
    let mut found: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        let to = began + WATCHED + round * MINUTE;
        std::thread::sleep(Duration::from_secs(to.saturating_sub(now())));
        found.clear();
        open.retain(|drawn| {
            let faults = faults(&prometheus, drawn, to);
            found.extend_from_slice(&faults);
            !faults.is_empty()
        });
        if open.is_empty() {
            return;
        }
    }
    panic!("{}", found.join("\n"));
}
