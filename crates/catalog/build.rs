//! Turns the driver files of `data/` into static tables, so that the daemon parses nothing at start and a mistake in
//! a data file is a build error that names the file and the counter.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DriverFile {
    driver: Driver,
    #[serde(default)]
    counter: Vec<Counter>,
    #[serde(default)]
    fact: Vec<Fact>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Driver {
    name: String,
    bound_as: Vec<String>,
    #[serde(default)]
    refresh_ms: u32,
    #[serde(default)]
    notes: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Counter {
    name: String,
    source: String,
    signal: String,
    per: String,
    #[serde(default)]
    direction: String,
    unit: String,
    kind: String,
    #[serde(default = "full_width")]
    width: u8,
    /// The driver extends the hardware's `width` bits to 64 by itself.
    #[serde(default)]
    extended: bool,
    #[serde(default)]
    saturates: bool,
    #[serde(default)]
    all_ones_is_missing: bool,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    rank: u8,
    #[serde(default)]
    summed: bool,
    #[serde(default)]
    reset: String,
    meaning: String,
    #[serde(default)]
    notes: String,
    #[serde(default)]
    since: String,
    #[serde(default)]
    privilege: String,
    cite: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fact {
    name: String,
    source: String,
    meaning: String,
    #[serde(default)]
    notes: String,
    cite: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricsFile {
    family: Vec<Family>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    name: String,
    kind: String,
    #[serde(default)]
    unit: String,
    #[serde(default = "counters")]
    origin: String,
    #[serde(default = "live")]
    status: String,
    help: String,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    from: Vec<From>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct From {
    signal: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

fn full_width() -> u8 {
    64
}

fn counters() -> String {
    "counters".to_owned()
}

fn live() -> String {
    "live".to_owned()
}

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let data = Path::new(&root).join("data");
    println!("cargo::rerun-if-changed={}", data.display());
    let files = driver_files(&data);
    let metrics: MetricsFile = parse(&data.join("metrics.toml"));

    let mut code = String::new();
    write_signals(&mut code, &files);
    write_drivers(&mut code, &files);
    write_names(&mut code, &files);
    write_families(&mut code, &metrics, &files);
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("tables.rs"), code).expect("OUT_DIR is writable");
}

/// All driver files in name order, which is also the order of every generated table and document.
fn driver_files(data: &Path) -> Vec<(String, DriverFile)> {
    let mut files: Vec<_> = std::fs::read_dir(data)
        .expect("data/ is readable")
        .map(|entry| entry.expect("data/ is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml") && !path.ends_with("metrics.toml"))
        .map(|path| {
            (
                path.file_name().expect("a file").to_string_lossy().into_owned(),
                parse(&path),
            )
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

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

fn write_signals(code: &mut String, files: &[(String, DriverFile)]) {
    let signals: BTreeSet<&str> = files
        .iter()
        .flat_map(|(_, file)| &file.counter)
        .map(|counter| counter.signal.as_str())
        .collect();
    code.push_str(
        "/// What a counter means, whatever the driver; generated from `data/`.\n\
         #[allow(missing_docs)]\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum Signal {\n",
    );
    for signal in &signals {
        let _ = writeln!(code, "    {},", camel(signal));
    }
    code.push_str("}\n\nconst SIGNALS: &[(&str, Signal)] = &[\n");
    for signal in &signals {
        let _ = writeln!(code, "    ({signal:?}, Signal::{}),", camel(signal));
    }
    code.push_str("];\n\n");
}

fn write_drivers(code: &mut String, files: &[(String, DriverFile)]) {
    code.push_str("/// Every driver of the catalogue, by file name.\npub static DRIVERS: &[Driver] = &[\n");
    for (file, content) in files {
        let Driver {
            name,
            bound_as,
            refresh_ms,
            notes,
        } = &content.driver;
        let _ = writeln!(
            code,
            "    Driver {{ file: {file:?}, name: {name:?}, bound_as: &{bound_as:?}, refresh_ms: {refresh_ms}, notes: {notes:?},"
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
         all_ones_is_missing: {all_ones_is_missing} }}, optional: {optional}, rank: {rank}, summed: {summed}, \
         meaning: {meaning:?}, notes: {notes:?}, reset: {reset:?}, since: {since:?}, privilege: {privilege:?}, cite: {cite:?} }},",
        camel(&counter.source),
        camel(&counter.signal),
        camel(&counter.per),
        camel(&counter.unit),
        camel(&counter.kind),
    );
}

/// One row for each literal counter name, with the patterns expanded, sorted for binary search.
fn write_names(code: &mut String, files: &[(String, DriverFile)]) {
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
    code.push_str("static NAMES: &[(usize, SourceKind, &str, usize, Option<Index>)] = &[\n");
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

fn write_families(code: &mut String, metrics: &MetricsFile, files: &[(String, DriverFile)]) {
    let known: BTreeSet<&str> = files
        .iter()
        .flat_map(|(_, file)| &file.counter)
        .map(|counter| counter.signal.as_str())
        .collect();
    code.push_str("/// Every metric family of the contract, in the order in which they are exposed.\n");
    code.push_str("pub static FAMILIES: &[Family] = &[\n");
    for Family {
        name,
        kind,
        unit,
        origin,
        status,
        help,
        labels,
        from,
    } in &metrics.family
    {
        let _ = writeln!(
            code,
            "    Family {{ name: {name:?}, kind: FamilyKind::{}, unit: {unit:?}, origin: Origin::{}, status: Status::{}, help: {help:?}, labels: &{labels:?}, from: &[",
            camel(kind),
            camel(origin),
            camel(status)
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
    code.push_str("];\n");
}
