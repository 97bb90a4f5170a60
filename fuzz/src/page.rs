//! A reader of expositions that lets nothing pass: Prometheus text 0.0.4 and `OpenMetrics` 1.0 as their documents define
//! them, apart from what the daemon never writes (timestamps, exemplars, summaries).

use std::collections::{BTreeMap, HashSet};

/// One line with a value.
#[derive(Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

#[derive(Default)]
struct Family {
    name: String,
    kind: String,
    samples: Vec<Sample>,
}

/// Panics unless `page` is well formed.
pub(crate) fn check(page: &str, is_open: bool) {
    let body = if is_open {
        page.strip_suffix("# EOF\n").expect("OpenMetrics ends in EOF")
    } else {
        page
    };
    assert!(
        body.is_empty() || body.ends_with('\n'),
        "the last line is not ended"
    );
    let mut names = HashSet::new();
    let mut series = HashSet::new();
    for family in families(body) {
        assert!(names.insert(family.name.clone()), "{} comes twice", family.name);
        for sample in &family.samples {
            let mut labels = sample.labels.clone();
            labels.sort();
            assert!(
                series.insert((sample.name.clone(), labels)),
                "{sample:?} comes twice"
            );
            check_sample(&family, sample, is_open);
        }
        if family.kind == "histogram" {
            check_buckets(&family);
        }
    }
}

fn families(body: &str) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for line in body.split_terminator('\n') {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let name = rest.split(' ').next().unwrap_or_default().to_owned();
            families.push(Family {
                name,
                ..Family::default()
            });
            continue;
        }
        let family = families.last_mut().expect("a family begins with its HELP");
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a TYPE has a name and a kind");
            assert!(
                name == family.name && family.kind.is_empty() && family.samples.is_empty(),
                "{line}"
            );
            family.kind = kind.to_owned();
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').expect("a UNIT has a name and a unit");
            assert!(
                name == family.name && name.ends_with(&format!("_{unit}")),
                "{line}"
            );
        } else {
            family.samples.push(sample(line));
        }
    }
    families
}

fn check_sample(family: &Family, sample: &Sample, is_open: bool) {
    let suffix = sample.name.strip_prefix(family.name.as_str());
    let is_right = match (family.kind.as_str(), suffix) {
        ("counter", Some("_total")) => is_open && sample.value >= 0.0,
        ("counter", Some("")) => !is_open && sample.value >= 0.0,
        ("gauge", Some("")) => true,
        ("histogram", Some("_bucket")) => sample.value >= 0.0 && label(sample, "le").is_some(),
        ("histogram", Some("_sum" | "_count")) => sample.value >= 0.0,
        _ => false,
    };
    assert!(is_right, "{sample:?} in {} {}", family.kind, family.name);
    let names: HashSet<_> = sample.labels.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), sample.labels.len(), "{sample:?}");
}

fn label<'a>(sample: &'a Sample, name: &str) -> Option<&'a str> {
    sample
        .labels
        .iter()
        .find(|(label, _)| label == name)
        .map(|(_, value)| value.as_str())
}

/// Buckets grow up to the last, which is without bound and holds as many as are counted.
fn check_buckets(family: &Family) {
    let mut groups: BTreeMap<Vec<(String, String)>, Vec<&Sample>> = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        labels.retain(|(name, _)| name != "le");
        groups.entry(labels).or_default().push(sample);
    }
    for (labels, samples) in groups {
        let buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|sample| {
                Some((
                    label(sample, "le")?.parse().expect("a bound is a number"),
                    sample.value,
                ))
            })
            .collect();
        assert!(
            buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
            "{} {labels:?}",
            family.name
        );
        let count = samples
            .iter()
            .find(|sample| sample.name.ends_with("_count"))
            .map(|sample| sample.value);
        let last = buckets.last().expect("a histogram has buckets");
        assert_eq!(
            (last.0, Some(last.1)),
            (f64::INFINITY, count),
            "{} {labels:?}",
            family.name
        );
    }
}

/// Reads one line with a value.
pub(crate) fn sample(line: &str) -> Sample {
    let end = line
        .find(['{', ' '])
        .unwrap_or_else(|| panic!("no value: {line}"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name, ":"), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        (labels, rest) = read_labels(inside);
    }
    let value = rest
        .strip_prefix(' ')
        .unwrap_or_else(|| panic!("no space before the value: {line}"));
    let is_spelled_right = matches!(value, "NaN" | "+Inf" | "-Inf")
        || value
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"+-.e".contains(&byte));
    assert!(is_spelled_right, "{line}");
    Sample {
        name: name.to_owned(),
        labels,
        value: value.parse().unwrap_or_else(|_| panic!("no number: {line}")),
    }
}

/// The labels behind an opening brace, and what follows the closing one.
fn read_labels(mut rest: &str) -> (Vec<(String, String)>, &str) {
    let mut labels = Vec::new();
    loop {
        let (name, behind) = rest.split_once("=\"").expect("a label has a value in quotes");
        assert!(is_name(name, ""), "{name}");
        let (value, behind) = read_value(behind);
        labels.push((name.to_owned(), value));
        if let Some(end) = behind.strip_prefix('}') {
            return (labels, end);
        }
        rest = behind.strip_prefix(',').expect("a comma between labels");
    }
}

fn read_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match letters.next() {
                Some((_, 'n')) => '\n',
                Some((_, escaped @ ('\\' | '"'))) => escaped,
                other => panic!("an escape that is none: {other:?}"),
            }),
            other => value.push(other),
        }
    }
    panic!("a value without its end: {text}")
}

/// A letter, an underscore or one of `more`, and digits behind it.
fn is_name(name: &str, more: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || more.contains(letter);
    name.starts_with(is_letter)
        && name
            .chars()
            .all(|letter| is_letter(letter) || letter.is_ascii_digit())
}
