//! `rocewatch explain`: what the catalogue knows of a counter, a signal or a metric.

use super::print;
use crate::failure::Failure;
use catalog::{Driver, Entry, Family, Index, Meaning, PREFIX, Signal};
use std::fmt::Write as _;

/// Prints everything that goes by `name`.
pub(super) fn explain(name: &str) -> Result<(), Failure> {
    let text = of_metric(name)
        .or_else(|| of_signal(name))
        .or_else(|| of_counter(name))
        .ok_or_else(|| Failure::Usage(unknown(name)))?;
    print(&text)
}

/// A metric, with the counters that it comes from.
fn of_metric(name: &str) -> Option<String> {
    let bare = name.strip_prefix(PREFIX).unwrap_or(name);
    let family = catalog::family(bare).or_else(|| catalog::family(bare.strip_suffix("_total")?))?;
    let mut out = format!("{}\n  {}\n", family.exposed_name(), family.help);
    row(&mut out, "labels", &family.labels.join(", "));
    for (driver, entry) in entries() {
        if family.takes(entry.signal, entry.first_index()).is_some() {
            row(
                &mut out,
                "from",
                &format!("{} of {} ({})", entry.name, driver.name, entry.source),
            );
        }
    }
    Some(out)
}

/// A signal, with every counter that carries it.
fn of_signal(name: &str) -> Option<String> {
    let signal = Signal::from_name(name)?;
    let mut out = format!("{signal}\n");
    for (driver, entry) in entries().filter(|(_, entry)| entry.signal == signal) {
        let meaning = Meaning {
            entry,
            index: entry.first_index(),
        };
        describe(&mut out, driver, &meaning, entry.name);
    }
    Some(out)
}

/// A counter, as each driver that has it means it.
fn of_counter(name: &str) -> Option<String> {
    let mut out = format!("{name}\n");
    let mut found = false;
    for (driver, entry) in entries() {
        let bound_as = driver.bound_as.first().copied().unwrap_or_default();
        let meaning = catalog::meaning(bound_as, entry.source, name);
        let here = meaning
            .filter(|meaning| std::ptr::eq(meaning.entry, entry))
            .or_else(|| {
                (entry.name == name).then(|| Meaning {
                    entry,
                    index: entry.first_index(),
                })
            });
        if let Some(meaning) = here {
            describe(&mut out, driver, &meaning, name);
            found = true;
        }
    }
    found.then_some(out)
}

fn entries() -> impl Iterator<Item = (&'static Driver, &'static Entry)> {
    catalog::DRIVERS
        .iter()
        .flat_map(|driver| driver.entries.iter().map(move |entry| (driver, entry)))
}

fn describe(out: &mut String, driver: &Driver, meaning: &Meaning, name: &str) {
    let entry = meaning.entry;
    let whose = if driver.name == "*" {
        "the kernel, for every driver"
    } else {
        driver.name
    };
    let _ = writeln!(
        out,
        "\n  {name}, {} of {whose}\n    {}",
        entry.source, entry.meaning
    );
    let index = meaning
        .index
        .map(|index| format!(", {}", of_index(index)))
        .unwrap_or_default();
    let direction = entry
        .direction
        .map(|direction| format!(", {}", direction.as_str()))
        .unwrap_or_default();
    row(out, "signal", &format!("{}{index}{direction}", entry.signal));
    row(
        out,
        "unit",
        &format!("{}, {} bits", entry.unit.as_str(), entry.width.bits),
    );
    let metric = catalog::FAMILIES
        .iter()
        .find(|family| family.takes(entry.signal, meaning.index).is_some());
    row(
        out,
        "metric",
        &metric.map(Family::exposed_name).unwrap_or_default(),
    );
    row(out, "resets", entry.reset);
    row(out, "since", entry.since);
    row(out, "needs", entry.privilege);
    row(out, "beware", entry.notes);
    row(out, "source", entry.cite);
}

fn of_index(index: Index) -> String {
    match index {
        Index::Priority(number) => format!("priority {number}"),
        Index::TrafficClass(number) => format!("traffic class {number}"),
        Index::Queue(number) => format!("CoS queue {number}"),
        Index::Lane(number) => format!("lane {number}"),
        Index::Dscp(number) => format!("DSCP {number}"),
    }
}

fn row(out: &mut String, label: &str, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "    {label:<9}{text}");
    }
}

fn unknown(name: &str) -> String {
    let metrics = catalog::FAMILIES.iter().map(Family::exposed_name);
    let signals = Signal::all().map(|signal| signal.as_str().to_owned());
    let counters = entries().map(|(_, entry)| entry.name.to_owned());
    let nearest = metrics
        .chain(signals)
        .chain(counters)
        .max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)))
        .unwrap_or_default();
    format!("the catalogue knows no counter, signal or metric {name:?}; the nearest is {nearest:?}")
}
