//! As much of PromQL as it takes to tell the metrics of an expression.

/// What is neither a metric nor a label, function or aggregation that a parenthesis follows.
const WORDS: [&str; 10] = [
    "and", "or", "unless", "bool", "offset", "inf", "nan", "start", "end", "expr",
];
/// After these the parenthesis holds labels.
const LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// Names of the metrics, in their order.
pub(crate) fn metrics(expr: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = strip(expr);
    let mut labels = false;
    while let Some(begin) = rest.find(is_name) {
        // A number or a duration is no name, and neither is what stands right behind its digits.
        let word: String = rest[begin..].chars().take_while(|c| is_name(*c)).collect();
        if labels && rest[..begin].contains(')') {
            labels = false;
        }
        rest = rest[begin + word.len()..].to_owned();
        let called = rest.trim_start().starts_with('(');
        if LABELS.contains(&word.as_str()) {
            labels = called;
            continue;
        }
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        if labels
            || called
            || number
            || WORDS.contains(&word.to_lowercase().as_str())
            || is_aggregation(&word)
        {
            continue;
        }
        found.push(word);
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// `sum by (…) (…)`: no parenthesis follows the name itself.
fn is_aggregation(word: &str) -> bool {
    ["sum", "avg", "max", "min", "count", "topk", "bottomk"].contains(&word)
}

/// Without strings, matchers in braces, windows in brackets, and what Grafana puts in for `$…`.
fn strip(expr: &str) -> String {
    let mut kept = String::new();
    let (mut string, mut depth) = (false, 0_u32);
    let mut variable = false;
    for c in expr.replace("${__from}", "0").chars() {
        variable = c == '$' || (variable && (is_name(c)));
        match c {
            '"' => string = !string,
            _ if string => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ if depth > 0 || variable => {}
            c => kept.push(c),
        }
    }
    kept
}

#[test]
fn metrics_are_told_from_all_else() {
    let expr = "max by (device) (rate(a_total{b=\"c d\"}[$__range:$__interval] @ ${__from}e-3 offset -$quiet)) \
                > 3 * level:b:rate5m and on (x, y) group_left (z) c unless (topk(3, d offset 5m @ end()) or 1e-9 + e)";
    assert_eq!(metrics(expr), ["a_total", "level:b:rate5m", "c", "d", "e"]);
}
