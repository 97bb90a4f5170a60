//! Every expression runs against a Prometheus that scraped the simulated servers, and gives something.

use crate::common;
use crate::grafana::{Dashboard, Scene};
use crate::prometheus::Prometheus;
use crate::support::Daemon;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Storms last from second 10 to 30 of each minute, and links flap from 10 to 18. The shown time begins between the first ones
/// and the second, while all is well, and ends after the second.
const WATCHED: Duration = Duration::from_secs(102);
const SHOWN: u64 = 65;

/// Grafana's variables, as they stand when somebody looks at that time.
const CHOSEN: [(&str, &str); 6] = [
    ("${__from:date:seconds}", "FROM"),
    ("$__range", "65s"),
    ("$__rate_interval", "8s"),
    ("$__interval", "2s"),
    ("$quiet", "8s"),
    ("$cluster", ".*"),
];

/// Something to ask, and where it has to give something.
struct Question {
    place: String,
    expr: String,
    instant: bool,
    scene: Scene,
    /// Whether all zeros are an answer.
    zero: bool,
}

fn questions(dashboard: &Dashboard) -> Vec<Question> {
    let uid = dashboard.uid;
    let marks = dashboard.annotations.iter().map(|mark| Question {
        place: format!("{uid}, {}", mark.name),
        expr: mark.expr.clone(),
        instant: false,
        scene: mark.scene,
        zero: false,
    });
    let panels = dashboard.rows.iter().flat_map(|row| &row.panels);
    let queries = panels.flat_map(|panel| {
        panel.queries.iter().enumerate().map(move |(at, query)| Question {
            place: format!("{uid}, {} ({})", panel.title, crate::grafana::letter(at)),
            expr: query.expr.clone(),
            instant: query.instant,
            scene: query.scene.unwrap_or(panel.scene),
            zero: panel.quiet || at > 0,
        })
    });
    marks.chain(queries).collect()
}

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

fn values(answer: &[Value]) -> impl Iterator<Item = f64> {
    answer.iter().flat_map(|series| {
        let points = series["values"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![series["value"].clone()]);
        points
            .into_iter()
            .filter_map(|point| point[1].as_str().and_then(|value| value.parse().ok()))
    })
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is after 1970")
        .as_secs()
}

#[test]
#[ignore = "needs Debian's prometheus: ./x dashboards"]
fn every_expression_gives_something_where_it_should() {
    let questions: Vec<_> = common::all().iter().flat_map(questions).collect();
    let scenes: BTreeSet<_> = questions
        .iter()
        .map(|question| (node(question.scene), question.scene.scenario, question.scene.nic))
        .collect();
    let servers = scenes
        .into_iter()
        .map(|(name, scenario, nic)| {
            (
                name,
                Daemon::start(&["demo", "--scenario", scenario, "--nic", nic]),
            )
        })
        .collect();
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(data.path().join("rules.yml"), hastened(&crate::rules()))
        .expect("the rules can be written");
    let prometheus = Prometheus::start(&config(&servers), data);
    std::thread::sleep(WATCHED);

    let to = now();
    let from = to - SHOWN;
    let mut faults = Vec::new();
    for question in &questions {
        let expr = filled(question, from);
        let answer = if question.instant {
            prometheus.ask("query", &expr, &[("time", to.to_string())])
        } else {
            let course = [
                ("start", from.to_string()),
                ("end", to.to_string()),
                ("step", "2".to_owned()),
            ];
            prometheus.ask("query_range", &expr, &course)
        };
        let something = values(&answer).any(|value| value.is_finite() && (question.zero || value != 0.0));
        if !something {
            let what = if answer.is_empty() {
                "nothing"
            } else {
                "only zeros"
            };
            faults.push(format!(
                "{} on {}: {what} from {expr}",
                question.place,
                node(question.scene)
            ));
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        questions.len(),
        faults.join("\n")
    );
}
