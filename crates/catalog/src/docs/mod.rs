//! The catalogue as documents: `docs/counters.md` and `docs/metrics.md`. A test keeps the files equal to these.

mod counters;
mod metrics;

use crate::{DRIVERS, Driver, Entry, FAMILIES, Family, Meaning};
use std::collections::BTreeSet;

pub use counters::counters;
pub use metrics::metrics;

/// The family that `entry` goes out under.
fn family_of(entry: &'static Entry) -> Option<&'static Family> {
    let meaning = Meaning {
        entry,
        index: entry.first_index(),
    };
    FAMILIES.iter().find(|family| family.takes(&meaning).is_some())
}

/// The names that devices are bound to, without those whose vocabularies are all part of another's.
fn bindings() -> Vec<&'static str> {
    let names: BTreeSet<_> = DRIVERS
        .iter()
        .flat_map(|driver| driver.bound_as)
        .copied()
        .collect();
    let files = |name: &'static str| {
        vocabularies(name)
            .map(|driver| driver.file)
            .collect::<BTreeSet<_>>()
    };
    let counts = |name: &'static str| vocabularies(name).any(|driver| !driver.entries.is_empty());
    let part_of = |name: &'static str, other: &'static str| {
        files(name).is_subset(&files(other)) && files(name).len() < files(other).len()
    };
    names
        .iter()
        .copied()
        .filter(|name| *name != "*" && counts(name) && !names.iter().any(|other| part_of(name, other)))
        .collect()
}

/// The driver files that describe devices bound to `name`.
fn vocabularies(name: &str) -> impl Iterator<Item = &'static Driver> {
    DRIVERS
        .iter()
        .filter(move |driver| driver.bound_as.contains(&name))
}

/// A name as code that may stand in a table.
fn code(name: &str) -> String {
    format!("`{}`", name.replace('|', "\\|"))
}

/// A remark as a sentence.
fn sentence(remark: &str) -> String {
    let capital = match remark.chars().next() {
        Some(first)
            if remark
                .split(' ')
                .next()
                .is_some_and(|word| !word.contains(['_', '*', '/'])) =>
        {
            first.to_uppercase().to_string() + &remark[first.len_utf8()..]
        }
        _ => remark.to_owned(),
    };
    if capital.ends_with('.') {
        capital
    } else {
        capital + "."
    }
}

/// The anchor that a heading gets when Markdown is shown.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            other => other.is_alphanumeric().then_some(other),
        })
        .collect()
}

/// A metric as a link into `metrics.md`.
fn metric_link(family: &Family) -> String {
    let name = family.exposed_name();
    format!("[`{name}`](metrics.md#{})", anchor(&name))
}

/// A vocabulary as a link into `counters.md`.
fn driver_link(driver: &Driver) -> String {
    let heading = counters::heading(driver);
    format!(
        "[{}](counters.md#{})",
        counters::short_name(driver),
        anchor(&heading)
    )
}
