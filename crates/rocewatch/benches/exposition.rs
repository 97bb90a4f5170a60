//! What it costs to write 5,000 series as text: prefixes written in advance and numbers behind them, as the daemon does
//! it, against gathering and encoding by the `prometheus` crate. Both write the same bytes, or the benchmark fails.
#![allow(missing_docs)] // criterion's macros make undocumented functions

// The binary's own modules, each as a whole: not all of it is measured, and their tests run elsewhere.
#[allow(dead_code, unused_imports)]
#[path = "../src/metrics/gzip.rs"]
mod gzip;
#[allow(dead_code, unused_imports)]
#[path = "../src/metrics/number.rs"]
mod number;
#[allow(dead_code, unused_imports)]
#[path = "../src/metrics/text.rs"]
mod text;

use catalog::FamilyKind;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use number::Number;
use prometheus::{Encoder as _, IntCounterVec, Opts, Registry, TextEncoder};
use std::hint::black_box;
use std::ops::Range;
use text::Format;

/// Eight ports with 625 series each: a node where the driver's own counters are shown as well.
const FAMILIES: u64 = 50;
const PORTS: u64 = 8;
const PRIORITIES: u64 = 8;
/// 8 ports, 8 priorities, 2 directions are 128 series a family; the first 100 make 5,000 of 50 families.
const SERIES: usize = 100;
/// In alphabetical order, since the `prometheus` crate sorts them.
const LABELS: [&str; 5] = ["device", "direction", "netdev", "port", "priority"];
const HELP: &str = "Frames of this kind that the port has seen.";

struct Series {
    labels: [String; 5],
    value: u64,
}

struct Family {
    name: String,
    series: Vec<Series>,
}

fn families() -> Vec<Family> {
    (0..FAMILIES)
        .map(|family| Family {
            name: format!("rocewatch_frames_{family:02}"),
            series: series(family),
        })
        .collect()
}

fn series(family: u64) -> Vec<Series> {
    let mut all = Vec::new();
    for port in 0..PORTS {
        for direction in ["rx", "tx"] {
            for priority in 0..PRIORITIES {
                let labels = [
                    format!("mlx5_{port}"),
                    direction.to_owned(),
                    format!("ens{port}np0"),
                    "1".to_owned(),
                    priority.to_string(),
                ];
                // 13 digits, which a 64-bit float still holds exactly: the other side knows no integers.
                let value = 1_000_000_000_000 + 7919 * (family * 1000 + port * 100 + priority);
                all.push(Series { labels, value });
            }
        }
    }
    all.truncate(SERIES);
    all
}

/// As `metrics::layout` does it.
struct Prepared {
    prefixes: String,
    /// Each family's header, and its series.
    families: Vec<(String, Vec<Line>)>,
}

/// Where a series' prefix is, and its value.
type Line = (Range<usize>, u64);

impl Prepared {
    fn of(families: &[Family]) -> Self {
        let mut prefixes = String::new();
        let families = families
            .iter()
            .map(|family| {
                let mut header = String::new();
                text::header(
                    Format::Text,
                    &family.name,
                    FamilyKind::Counter,
                    "",
                    HELP,
                    &mut header,
                );
                let series = family.series.iter().map(|series| {
                    let start = prefixes.len();
                    let values = series.labels.iter().map(String::as_str);
                    text::prefix(
                        &family.name,
                        "_total",
                        LABELS.into_iter().zip(values),
                        &mut prefixes,
                    );
                    (start..prefixes.len(), series.value)
                });
                (header, series.collect())
            })
            .collect();
        Self { prefixes, families }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        for (header, series) in &self.families {
            out.extend_from_slice(header.as_bytes());
            for (prefix, value) in series {
                out.extend_from_slice(&self.prefixes.as_bytes()[prefix.clone()]);
                Number::count(*value).write(out);
                out.push(b'\n');
            }
        }
    }
}

fn registry(families: &[Family]) -> Registry {
    let registry = Registry::new();
    for family in families {
        let options = Opts::new(format!("{}_total", family.name), HELP);
        let counters = IntCounterVec::new(options, &LABELS).expect("valid names");
        for series in &family.series {
            let labels = series.labels.each_ref().map(String::as_str);
            counters.with_label_values(&labels).inc_by(series.value);
        }
        registry
            .register(Box::new(counters))
            .expect("each name is registered once");
    }
    registry
}

fn gather(registry: &Registry, out: &mut Vec<u8>) {
    out.clear();
    TextEncoder::new()
        .encode(&registry.gather(), out)
        .expect("writing to memory does not fail");
}

fn exposition(criterion: &mut Criterion) {
    let families = families();
    let (prepared, registry) = (Prepared::of(&families), registry(&families));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    prepared.encode(&mut ours);
    gather(&registry, &mut theirs);
    assert!(ours == theirs, "both sides write the same exposition");

    let mut group = criterion.benchmark_group("5000 series");
    group.throughput(Throughput::Elements(FAMILIES * SERIES as u64));
    group.bench_function("prepared", |b| b.iter(|| prepared.encode(black_box(&mut ours))));
    group.bench_function("prometheus crate", |b| {
        b.iter(|| gather(&registry, black_box(&mut theirs)));
    });
    let mut gzip = gzip::Gzip::new();
    group.bench_function("gzip level 1", |b| b.iter(|| gzip.pack(black_box(&ours))));
    group.finish();
}

criterion_group!(benches, exposition);
criterion_main!(benches);
