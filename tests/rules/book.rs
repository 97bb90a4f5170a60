//! The rules as Prometheus has read them.

use crate::prometheus::Prometheus;
use crate::support::get;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// `deploy/`.
pub(crate) fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// A rule, as it stands in a file of `deploy/prometheus`.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The group that it stands in.
    pub(crate) group: String,
    pub(crate) name: String,
    /// An alert, or else a recording.
    pub(crate) is_alert: bool,
    /// On one line, as Prometheus writes it.
    pub(crate) query: String,
    /// How long it has to hold, in seconds.
    pub(crate) hold: u64,
    /// How long it goes on when it does not hold any more, in seconds.
    pub(crate) keep: u64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// All rules of `rocewatch-alerts.yml`, in order.
pub(crate) fn rules() -> Vec<Rule> {
    static RULES: OnceLock<Vec<Rule>> = OnceLock::new();
    RULES.get_or_init(|| read("rocewatch-alerts.yml")).clone()
}

/// All rules of `rocewatch-recording.yml`, in order.
pub(crate) fn recordings() -> Vec<Rule> {
    read("rocewatch-recording.yml")
}

fn read(name: &str) -> Vec<Rule> {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let file = deploy().join("prometheus").join(name);
    let file = file.canonicalize().expect("the rules are there");
    let prometheus = Prometheus::start(&format!("rule_files: ['{}']\n", file.display()), data);
    let (_, body) = get(prometheus.address(), "/api/v1/rules", &[]);
    let answer: Value = serde_json::from_slice(&body).expect("the answer is JSON");
    let groups = answer["data"]["groups"]
        .as_array()
        .expect("there are groups")
        .clone();
    let of_group = |group: Value| {
        let name = string(&group["name"]);
        let rules = group["rules"].as_array().expect("a group has rules").clone();
        rules.into_iter().map(move |rule| Rule::new(&name, &rule))
    };
    // Prometheus sorts groups by name; the file's order is the reader's.
    let mut rules: Vec<_> = groups.into_iter().flat_map(of_group).collect();
    let text = std::fs::read_to_string(&file).expect("the rules are readable");
    rules.sort_by_key(|rule| text.find(&format!(": {}\n", rule.name)));
    assert!(rules.len() > 20, "Prometheus has read {} rules", rules.len());
    rules
}

fn string(value: &Value) -> String {
    value.as_str().expect("it is a text").to_owned()
}

fn strings(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.clone(), string(value))).collect()
}

impl Rule {
    fn new(group: &str, rule: &Value) -> Self {
        // Whole and not negative, as Prometheus tells them.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let seconds = |key: &str| rule[key].as_f64().map_or(0, |seconds| seconds as u64);
        Self {
            group: group.to_owned(),
            name: string(&rule["name"]),
            is_alert: rule["type"] == "alerting",
            query: string(&rule["query"]),
            hold: seconds("duration"),
            keep: seconds("keepFiringFor"),
            labels: strings(&rule["labels"]),
            annotations: strings(&rule["annotations"]),
        }
    }

    /// As it stands in a file of rules.
    pub(crate) fn to_json(&self) -> Value {
        if self.is_alert {
            json!({
                "alert": self.name, "expr": self.query, "for": format!("{}s", self.hold),
                "keep_firing_for": format!("{}s", self.keep),
                "labels": self.labels, "annotations": self.annotations,
            })
        } else {
            json!({"record": self.name, "expr": self.query, "labels": self.labels})
        }
    }

    /// The values that the query wants of this label.
    pub(crate) fn values_of(&self, label: &str) -> Vec<String> {
        let begin = format!("{label}=\"");
        let after = self.query.split(begin.as_str()).skip(1);
        after
            .filter_map(|rest| rest.split('"').next())
            .map(str::to_owned)
            .collect()
    }

    /// Names of Rocewatch's metrics in the query and in the queries of the annotations.
    pub(crate) fn metrics(&self) -> BTreeSet<String> {
        let texts = std::iter::once(&self.query).chain(self.annotations.values());
        let words =
            texts.flat_map(|text| text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')));
        let recorded = |word: &str| word.starts_with("rocewatch:") || word.contains(":rocewatch_");
        let metric = |word: &&str| word.starts_with("rocewatch_") || recorded(word);
        words.filter(metric).map(str::to_owned).collect()
    }
}
