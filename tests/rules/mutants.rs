//! Spoils a rule in every way that matters, and sees whether its unit test notices: what it does not notice, it does not test.

use crate::book::{Rule, deploy};
use crate::{complaint, text};
use serde_json::json;

/// The ways to spoil this rule that its unit test lets pass.
pub(crate) fn unnoticed(rules: &[Rule], rule: &Rule) -> Vec<String> {
    let test = deploy().join(format!("prometheus/tests/{}.yml", rule.name));
    let test = text(&test);
    mutants(rule)
        .into_iter()
        .filter(|mutant| passes(rules, mutant, &test))
        .map(|mutant| {
            format!(
                "{}: {} for {} s, kept for {} s",
                mutant.name, mutant.query, mutant.hold, mutant.keep
            )
        })
        .collect()
}

fn mutants(rule: &Rule) -> Vec<Rule> {
    let query = &rule.query;
    let mut queries = vec![
        // It never fires.
        format!("({query}) > 0 < 0"),
        // It never resolves.
        format!("last_over_time(({query})[1h:15s])"),
    ];
    // It does not ask for one of its labels.
    queries.extend(each(query, "=\"", |rest| {
        let end = rest[2..].find('"').map_or(rest.len(), |end| end + 3);
        ("=~\".*\"".to_owned(), end)
    }));
    // It does not look at the value.
    for comparison in [" == 0", " == 1", " > 0", " >= 2"] {
        queries.extend(each(query, comparison, |_| {
            (" > -1".to_owned(), comparison.len())
        }));
    }
    // It takes one condition for enough.
    queries.extend(each(query, " and ", |_| (" or ".to_owned(), " and ".len())));
    let mut mutants: Vec<_> = queries
        .into_iter()
        .map(|query| Rule {
            query,
            ..rule.clone()
        })
        .collect();
    if rule.hold > 0 {
        // It does not wait.
        mutants.push(Rule {
            hold: 0,
            ..rule.clone()
        });
    }
    if rule.keep > 0 {
        // It is over at once.
        mutants.push(Rule {
            keep: 0,
            ..rule.clone()
        });
    }
    mutants
}

/// The text with one occurrence of `what` replaced, for each of them. `by` is given the text from there on, and gives what comes
/// instead of how many bytes.
fn each<'a>(
    text: &'a str,
    what: &'a str,
    by: impl Fn(&str) -> (String, usize) + 'a,
) -> impl Iterator<Item = String> + 'a {
    text.match_indices(what).map(move |(at, _)| {
        let (instead, length) = by(&text[at..]);
        format!("{}{instead}{}", &text[..at], &text[at + length..])
    })
}

/// True if the unit test finds nothing wrong with this rule among the others.
fn passes(rules: &[Rule], mutant: &Rule, test: &str) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let groups: Vec<_> = rules
        .iter()
        .map(|rule| if rule.name == mutant.name { mutant } else { rule })
        .filter(|rule| !rule.is_alert || rule.name == mutant.name)
        // A group for each, in order: an alert may look at what is recorded before it.
        .map(|rule| json!({"name": format!("{} {}", rule.group, rule.name), "rules": [rule.to_json()]}))
        .collect();
    // JSON is YAML.
    let file = folder.path().join("rocewatch-alerts.yml");
    std::fs::write(&file, json!({"groups": groups}).to_string()).expect("the rules can be written");
    let unit = folder.path().join("tests.yml");
    std::fs::write(
        &unit,
        test.replace("../rocewatch-alerts.yml", "rocewatch-alerts.yml"),
    )
    .expect("the test can be written");
    complaint("promtool", &["test", "rules"], &[unit]).is_none()
}
