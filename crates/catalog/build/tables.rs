//! The tables, as Rust source.

use crate::data::{Counter, Driver, DriverFile, Fact, Family, From, Unexposed};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

fn camel(words: &str) -> String {
    words
        .split(['.', '_'])
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_ascii_uppercase().to_string() + letters.as_str()
            })
        })
        .collect()
}

pub(crate) fn write_signals(code: &mut String, files: &[(String, DriverFile)]) {
    let signals = signal_names(files);
    code.push_str(
        "/// What a counter means, whatever the driver; generated from `data/`.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum Signal {\n",
    );
    for signal in &signals {
        let _ = writeln!(code, "    /// `{signal}`\n    {},", camel(signal));
    }
    let _ = writeln!(
        code,
        "}}\n\nimpl Signal {{\n    /// How many there are: `signal as usize` is less.\n    pub const COUNT: usize = {};",
        signals.len()
    );
    code.push_str("}\n\npub(crate) static SIGNALS: &[(&str, Signal)] = &[\n");
    for signal in &signals {
        let _ = writeln!(code, "    ({signal:?}, Signal::{}),", camel(signal));
    }
    code.push_str("];\n\n");
}

pub(crate) fn write_drivers(code: &mut String, files: &[(String, DriverFile)]) {
    code.push_str("/// Every driver of the catalogue, by file name.\npub static DRIVERS: &[Driver] = &[\n");
    for (file, content) in files {
        let Driver {
            name,
            bound_as,
            title,
            refresh_ms,
            notes,
        } = &content.driver;
        let _ = writeln!(
            code,
            "    Driver {{ file: {file:?}, name: {name:?}, bound_as: &{bound_as:?}, title: {title:?}, refresh_ms: {refresh_ms}, notes: {notes:?},"
        );
        code.push_str("        entries: &[\n");
        for counter in &content.counter {
            write_entry(code, file, counter);
        }
        code.push_str("        ],\n        facts: &[\n");
        for Fact {
            name,
            source,
            meaning,
            notes,
            cite,
        } in &content.fact
        {
            let _ = writeln!(
                code,
                "            Fact {{ name: {name:?}, source: {source:?}, meaning: {meaning:?}, notes: {notes:?}, cite: {cite:?} }},"
            );
        }
        code.push_str("        ],\n    },\n");
    }
    code.push_str("];\n\n");
}

fn write_entry(code: &mut String, file: &str, counter: &Counter) {
    let place = format!("{file}: counter {:?}", counter.name);
    let direction = match counter.direction.as_str() {
        "" => "None".to_owned(),
        "rx" | "tx" => format!("Some(Direction::{})", camel(&counter.direction)),
        other => panic!("{place}: direction {other:?} is neither rx nor tx"),
    };
    assert!(
        (1..=64).contains(&counter.width),
        "{place}: width {} is not 1..=64",
        counter.width
    );
    let Counter {
        name,
        extended,
        saturates,
        all_ones_is_missing,
        optional,
        without_firmware,
        port_alone,
        rank,
        summed,
        ..
    } = counter;
    let Counter {
        width,
        meaning,
        notes,
        reset,
        since,
        privilege,
        cite,
        ..
    } = counter;
    let _ = writeln!(
        code,
        "            Entry {{ name: {name:?}, source: SourceKind::{}, signal: Signal::{}, per: Per::{}, direction: {direction}, \
         unit: Unit::{}, kind: Kind::{}, width: Width {{ bits: {width}, extended: {extended}, saturates: {saturates}, \
         all_ones_is_missing: {all_ones_is_missing} }}, optional: {optional}, without_firmware: {without_firmware}, port_alone: {port_alone}, rank: {rank}, summed: {summed}, \
         meaning: {meaning:?}, notes: {notes:?}, reset: {reset:?}, since: {since:?}, privilege: {privilege:?}, cite: {cite:?} }},",
        camel(&counter.source),
        camel(&counter.signal),
        camel(&counter.per),
        camel(&counter.unit),
        camel(&counter.kind),
    );
}

/// One row for each literal counter name, with the patterns expanded, sorted for binary search.
pub(crate) fn write_names(code: &mut String, files: &[(String, DriverFile)]) {
    let mut rows = BTreeMap::new();
    for (d, (file, content)) in files.iter().enumerate() {
        for (e, counter) in content.counter.iter().enumerate() {
            for (name, index) in expand(&counter.name) {
                let key = (d, camel(&counter.source), name.clone());
                let row = format!("    ({d}, SourceKind::{}, {name:?}, {e}, {index}),", key.1);
                assert!(
                    rows.insert(key, row).is_none(),
                    "{file}: counter {name:?} of {} stands twice",
                    counter.source
                );
            }
        }
    }
    code.push_str("pub(crate) static NAMES: &[(usize, SourceKind, &str, usize, Option<Index>)] = &[\n");
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|((driver, source, name), _)| (*driver, source_order(source), name.clone()));
    for (_, row) in rows {
        code.push_str(&row);
        code.push('\n');
    }
    code.push_str("];\n\n");
}

/// The order in which `SourceKind` declares its variants, which is the order in which it compares.
fn source_order(source: &str) -> usize {
    [
        "Ethtool",
        "HwCounters",
        "DeviceCounters",
        "PortCounters",
        "Link",
        "Settings",
        "Dcb",
        "Hwmon",
        "Aer",
        "Module",
        "Verbs",
    ]
    .iter()
    .position(|known| *known == source)
    .unwrap_or_else(|| panic!("unknown source {source}"))
}

fn expand(pattern: &str) -> Vec<(String, String)> {
    let placeholders = [
        ("{prio}", "Priority", 8),
        ("{tc}", "TrafficClass", 8),
        ("{q}", "Queue", 8),
        ("{lane}", "Lane", 8),
        ("{dscp}", "Dscp", 64),
    ];
    for (placeholder, variant, count) in placeholders {
        if pattern.contains(placeholder) {
            return (0..count)
                .map(|i| {
                    (
                        pattern.replace(placeholder, &i.to_string()),
                        format!("Some(Index::{variant}({i}))"),
                    )
                })
                .collect();
        }
    }
    assert!(
        !pattern.contains('{'),
        "counter {pattern:?} has an unknown placeholder"
    );
    vec![(pattern.to_owned(), "None".to_owned())]
}

pub(crate) fn write_families(code: &mut String, families: &[Family], files: &[(String, DriverFile)]) {
    let known = signal_names(files);
    code.push_str("/// Every metric family, in the order in which they are exposed.\n");
    code.push_str("pub static FAMILIES: &[Family] = &[\n");
    for Family {
        section,
        name,
        kind,
        unit,
        origin,
        status,
        essential,
        help,
        labels,
        from,
    } in families
    {
        let _ = writeln!(
            code,
            "    Family {{ section: {section:?}, name: {name:?}, kind: FamilyKind::{}, unit: {unit:?}, origin: Origin::{}, \
             status: Status::{}, essential: {essential}, help: {help:?}, labels: &{labels:?}, from: &[",
            camel(kind),
            camel(origin),
            camel(status),
        );
        for From { signal, labels } in from {
            assert!(
                known.contains(signal.as_str()),
                "metrics.toml: family {name:?} names the unknown signal {signal:?}"
            );
            let labels: Vec<_> = labels.iter().collect();
            let _ = writeln!(
                code,
                "        From {{ signal: Signal::{}, labels: &{labels:?} }},",
                camel(signal)
            );
        }
        code.push_str("    ] },\n");
    }
    code.push_str("];\n\n");
}

pub(crate) fn write_unexposed(code: &mut String, unexposed: &[Unexposed], files: &[(String, DriverFile)]) {
    let known = signal_names(files);
    code.push_str("/// The signals that go out under no family of their own, each with the reason.\n");
    code.push_str("pub static UNEXPOSED: &[(Signal, &str)] = &[\n");
    for Unexposed { reason, signals } in unexposed {
        for signal in signals {
            assert!(
                known.contains(signal.as_str()),
                "metrics.toml: `unexposed` names the unknown signal {signal:?}"
            );
            let _ = writeln!(code, "    (Signal::{}, {reason:?}),", camel(signal));
        }
    }
    code.push_str("];\n");
}

fn signal_names(files: &[(String, DriverFile)]) -> BTreeSet<&str> {
    files
        .iter()
        .flat_map(|(_, file)| &file.counter)
        .map(|counter| counter.signal.as_str())
        .collect()
}
