//! `docs/counters.md`: what each driver's counters mean.

use super::{anchor, bindings, code, metric_link, sentence, series_link, series_of, vocabularies};
use crate::{DRIVERS, Driver, Entry, FAMILIES, Family, Origin, SourceKind, UNEXPOSED, Width};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Counters

What each NIC's driver counts, what it means, and under which [metric](metrics.md) it goes out. This file is written
from the data under `crates/catalog/data`; change it there.

How to read it:

- **Direction** is as seen from this node. Of pause it says who is held: **rx** pause was received, so *this node*
  had to stop sending, and the congestion lies in the fabric or at a receiver beyond it. **tx** pause was sent, so
  *the switch* had to stop, because this node did not take its traffic fast enough.
- `{prio}` in a name stands for a priority 0 to 7, `{tc}` for a traffic class, `{q}` for a CoS queue, `{lane}` for a
  lane of the link, `{dscp}` for a DSCP value.
- **Unit** is the driver's own; metrics are in base units (seconds, bytes, ratios).
- **Width** says what a smaller value than the last one means. *32, wraps*: the count went round. *64*: it was reset.
  *32 → 64*: the driver extends what the hardware has, so it was reset. *8, stays full*: at its largest value it no
  longer counts at all.
- A counter that a NIC does not have gives no series. It is never shown as 0.
- Nothing here was measured on a NIC by the authors; the sources stand below each table. Where a source is silent the
  text says so.
";

const MATRIX_KEY: &str = "\
By the driver that the device is bound to; what the kernel tells of any NIC is left out. ● it counts; ○ it counts once
an optional counter is switched on.

";

/// All counters of all drivers, as Markdown.
#[must_use]
pub fn counters() -> String {
    let mut text = INTRODUCTION.to_owned();
    write_contents(&mut text);
    write_matrix(&mut text);
    for driver in DRIVERS {
        write_driver(&mut text, driver);
    }
    write_unexposed(&mut text);
    text
}

/// The name in tables of contents.
pub(super) fn short_name(driver: &Driver) -> &'static str {
    if driver.name == "*" { "kernel" } else { driver.name }
}

pub(super) fn heading(driver: &Driver) -> String {
    format!("{}: {}", short_name(driver), driver.title)
}

fn write_contents(text: &mut String) {
    text.push_str("\n| vocabulary | NIC | devices bound to | counters |\n| --- | --- | --- | ---: |\n");
    for driver in DRIVERS {
        let bound_as = if driver.name == "*" {
            "any".to_owned()
        } else {
            driver.bound_as.join(", ")
        };
        let _ = writeln!(
            text,
            "| [{}](#{}) | {} | {bound_as} | {} |",
            short_name(driver),
            anchor(&heading(driver)),
            driver.title,
            driver.entries.len()
        );
    }
}

/// Which NIC can tell what: a row a metric, a column a driver.
fn write_matrix(text: &mut String) {
    let columns = bindings();
    text.push_str("\n## What each NIC can tell\n\n");
    text.push_str(MATRIX_KEY);
    let _ = writeln!(text, "| metric | {} |", columns.join(" | "));
    let _ = writeln!(text, "| --- |{}", " :-: |".repeat(columns.len()));
    for family in FAMILIES.iter().filter(|family| family.origin == Origin::Counters) {
        let cells: Vec<_> = columns.iter().map(|name| mark(name, family)).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            let _ = writeln!(text, "| {} | {} |", metric_link(family), cells.join(" | "));
        }
    }
}

fn mark(bound_as: &str, family: &Family) -> &'static str {
    let ways: Vec<_> = vocabularies(bound_as)
        .flat_map(|driver| driver.entries)
        .filter(|entry| series_of(entry).is_some_and(|(fed, _)| fed.name == family.name))
        .collect();
    match ways.iter().all(|entry| entry.optional) {
        _ if ways.is_empty() => "",
        true => "○",
        false => "●",
    }
}

fn write_driver(text: &mut String, driver: &'static Driver) {
    let _ = writeln!(text, "\n## {}", heading(driver));
    if !driver.notes.is_empty() {
        let _ = writeln!(text, "\n{}", driver.notes);
    }
    if driver.refresh_ms > 0 {
        let _ = writeln!(
            text,
            "\nThe values change every {} ms at most, however often they are read.",
            driver.refresh_ms
        );
    }
    for source in SourceKind::ALL {
        let entries: Vec<_> = driver
            .entries
            .iter()
            .filter(|entry| entry.source == source)
            .collect();
        if !entries.is_empty() {
            let _ = writeln!(text, "\n### {}, {}\n", short_name(driver), where_read(source));
            write_table(text, &entries);
        }
    }
    write_facts(text, driver);
    write_list(
        text,
        "They restart",
        driver.entries.iter().map(|entry| entry.reset),
    );
    let cites = driver
        .entries
        .iter()
        .map(|entry| entry.cite)
        .chain(driver.facts.iter().map(|fact| fact.cite));
    write_list(text, "Sources", cites);
}

fn where_read(source: SourceKind) -> &'static str {
    match source {
        SourceKind::Ethtool => "`ethtool -S`",
        SourceKind::HwCounters => "`hw_counters` of the port",
        SourceKind::DeviceCounters => "`hw_counters` of the device",
        SourceKind::PortCounters => "`counters` of the port",
        SourceKind::Link => "link state",
        SourceKind::Settings => "ethtool settings",
        SourceKind::Dcb => "DCB",
        SourceKind::Hwmon => "hwmon",
        SourceKind::Aer => "Advanced Error Reporting of PCI Express",
        SourceKind::Module => "memory of the module",
        SourceKind::Verbs => "events of libibverbs",
        SourceKind::QpCounters => "counters of queue pairs",
    }
}

fn write_table(text: &mut String, entries: &[&'static Entry]) {
    text.push_str("| counter | goes out as | unit | width | meaning |\n| --- | --- | --- | --- | --- |\n");
    for entry in entries {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            code(entry.name),
            destination(entry),
            entry.unit.as_str(),
            width(entry.width),
            explanation(entry)
        );
    }
}

/// The series that it goes out as, and the signal.
fn destination(entry: &'static Entry) -> String {
    let metric = series_of(entry).map_or_else(
        || "raw only".to_owned(),
        |(family, from)| series_link(family, from),
    );
    format!("{metric}<br>{}", code(entry.signal.as_str()))
}

fn width(width: Width) -> String {
    let missing = if width.all_ones_is_missing {
        ", all ones: missing"
    } else {
        ""
    };
    let behaviour = match width {
        Width {
            extended: true, bits, ..
        } => format!("{bits} → 64"),
        Width {
            saturates: true,
            bits,
            ..
        } => format!("{bits}, stays full"),
        Width { bits: 64, .. } => "64".to_owned(),
        Width { bits, .. } => format!("{bits}, wraps"),
    };
    behaviour + missing
}

fn explanation(entry: &Entry) -> String {
    let mut parts = vec![entry.meaning.to_owned()];
    if !entry.notes.is_empty() {
        parts.push(format!("*{}*", sentence(entry.notes).replace('*', "\\*")));
    }
    if entry.summed {
        parts.push("One of several parts that are added up.".to_owned());
    }
    if entry.rank > 0 {
        parts.push(format!(
            "Used where nothing better is there (rank {}).",
            entry.rank
        ));
    }
    if !entry.privilege.is_empty() {
        parts.push(format!("Needs {}.", entry.privilege));
    }
    if !entry.since.is_empty() {
        parts.push(format!("Since {}.", entry.since));
    }
    parts.join(" ").replace('|', "\\|")
}

fn write_facts(text: &mut String, driver: &Driver) {
    if driver.facts.is_empty() {
        return;
    }
    text.push_str("\nWorth knowing, though not sampled as counters:\n\n");
    for fact in driver.facts {
        let notes = if fact.notes.is_empty() {
            String::new()
        } else {
            format!(" *{}*", sentence(fact.notes).replace('*', "\\*"))
        };
        let _ = writeln!(text, "- {}: {}{notes}", code(fact.name), fact.meaning);
    }
}

/// What is the same for many counters, said once.
fn write_list(text: &mut String, title: &str, items: impl Iterator<Item = &'static str>) {
    let items: BTreeSet<_> = items.filter(|item| !item.is_empty()).collect();
    if !items.is_empty() {
        let _ = writeln!(text, "\n{title}:\n");
        for item in items {
            let _ = writeln!(text, "- {}", item.replace('*', "\\*"));
        }
    }
}

fn write_unexposed(text: &mut String) {
    text.push_str("\n## Signals without a metric of their own\n\n");
    text.push_str("Their counters still go out in the raw families if those are switched on.\n\n");
    text.push_str("| why | signals |\n| --- | --- |\n");
    for reason in reasons() {
        let signals: Vec<_> = UNEXPOSED
            .iter()
            .filter(|(_, why)| *why == reason)
            .map(|(signal, _)| code(signal.as_str()))
            .collect();
        let _ = writeln!(text, "| {} | {} |", sentence(reason), signals.join(", "));
    }
}

fn reasons() -> Vec<&'static str> {
    let mut reasons: Vec<_> = UNEXPOSED.iter().map(|(_, reason)| *reason).collect();
    reasons.dedup();
    reasons
}
