//! The catalogue as documents: `docs/counters.md` and `docs/metrics.md`. A test keeps the files equal to these.

mod counters;
mod metrics;

use crate::{DRIVERS, Driver, Entry, FAMILIES, Family, From, Meaning};
use std::collections::BTreeSet;

pub use counters::counters;
pub use metrics::metrics;

/// The family that `entry` goes out under, and how.
fn series_of(entry: &'static Entry) -> Option<(&'static Family, &'static From)> {
    let meaning = Meaning {
        entry,
        index: entry.first_index(),
    };
    FAMILIES.iter().find_map(|family| {
        family
            .takes(meaning.signal(), meaning.index)
            .map(|from| (family, from))
    })
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

/// One series as a link into `metrics.md`, with the labels that the signal fixes.
fn series_link(family: &Family, from: &From) -> String {
    let labels: Vec<_> = from
        .labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\""))
        .collect();
    if labels.is_empty() {
        return metric_link(family);
    }
    let name = family.exposed_name();
    format!("[`{name}{{{}}}`](metrics.md#{})", labels.join(","), anchor(&name))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_rendered_markdown() {
        assert_eq!(
            anchor("mlx5_ib: NVIDIA ConnectX, RoCE side"),
            "mlx5_ib-nvidia-connectx-roce-side"
        );
        assert_eq!(anchor("bnxt_en, `ethtool -S`"), "bnxt_en-ethtool--s");
    }

    #[test]
    fn remarks_become_sentences_and_names_stay_names() {
        assert_eq!(sentence("needs the capability"), "Needs the capability.");
        assert_eq!(sentence("rp_cnp_handled is better."), "rp_cnp_handled is better.");
    }

    #[test]
    fn a_vocabulary_within_another_is_no_column() {
        let columns = bindings();
        assert!(columns.contains(&"ice") && columns.contains(&"mlx5_core"));
        assert!(!columns.contains(&"irdma") && !columns.contains(&"siw") && !columns.contains(&"*"));
    }
}
