//! History in other programs' formats, read by those programs: `DuckDB`, pandas and promtool.

#![allow(clippy::disallowed_methods)] // tests start processes and write files

#[path = "../support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{Daemon, run};

/// An archive, and the names and labels of the series that its daemon served.
struct Recorded {
    state: tempfile::TempDir,
    served: BTreeSet<String>,
}

/// Some simulated minutes.
fn recorded() -> Recorded {
    let state = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::storm(state.path());
    // Sealed minutes as well as a log.
    daemon.wait_for_rows(6_000.0);
    let page = daemon.text("/metrics");
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let served = samples.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()));
    Recorded {
        served: served.collect(),
        state,
    }
}

/// All of it in a format, in a file.
fn export(recorded: &Recorded, format: &str, more: &[&str]) -> PathBuf {
    let archive = recorded.state.path().join("archive");
    let archive = archive.to_str().expect("paths are text");
    // The simulated clock runs ahead of the wall's.
    let all = [
        "history",
        "--since",
        "-1d",
        "--until",
        "2100-01-01 00:00",
        "--archive",
        archive,
    ];
    let output = run(&[&all[..], &["--format", format], more].concat());
    succeeded(&output);
    let file = recorded
        .state
        .path()
        .join(format!("history{}.{format}", more.len()));
    std::fs::write(&file, &output.stdout).expect("the file can be written");
    file
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complaint}");
    said
}

fn lines_of(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("it is text");
    text.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "./x formats: needs Python with duckdb, pandas and pyarrow in FORMATS_PYTHON"]
fn duckdb_and_pandas_read_parquet() {
    let python = std::env::var("FORMATS_PYTHON").expect("./x formats sets it");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats/table.py");
    let recorded = recorded();
    let least = [
        (&[][..], 140_000),
        (&["--step", "1m"], 5_000),
        (&["--signal", "np_cnp_sent", "--port", "mlx5_1"], 500),
        // Nothing at all is a table as well.
        (&["--signal", "no_such_counter"], 0),
    ];
    for (options, least) in least {
        let parquet = export(&recorded, "parquet", options);
        let csv = export(&recorded, "csv", options);
        let checked = Command::new(&python).arg(&script).args([parquet, csv]).output();
        let rows = succeeded(&checked.expect("Python can be started"));
        let rows: u64 = rows.trim().parse().expect("it tells how many rows there are");
        assert!(rows >= least, "{options:?}: {rows} rows");
    }
}

/// A series' labels, its name among them, and a sample: milliseconds since 1970 and the value.
type Sample = (BTreeMap<String, String>, i64, f64);

/// `NAME{LABELS} REST` or `{LABELS} REST`, with no comma in a label's value.
fn labels(series: &str) -> BTreeMap<String, String> {
    let (name, labels) = series.split_once('{').expect("it has labels");
    let pairs = labels.trim_end_matches('}').split(',').map(str::trim);
    let pairs = pairs.filter_map(|pair| pair.split_once('='));
    let mut all: BTreeMap<_, _> = pairs
        // No label and an empty one are the same to Prometheus.
        .filter(|(_, value)| *value != "\"\"")
        .map(|(label, value)| (label.to_owned(), value.trim_matches('"').to_owned()))
        .collect();
    if !name.is_empty() {
        all.insert("__name__".to_owned(), name.to_owned());
    }
    all
}

fn milliseconds(seconds: &str) -> i64 {
    let (whole, part) = seconds.split_once('.').expect("it has a point");
    assert_eq!(part.len(), 3, "{seconds}");
    let number = |text: &str| text.parse::<i64>().expect("a number");
    number(whole) * 1_000 + number(part)
}

fn exported(text: &[String]) -> Vec<Sample> {
    let samples = text.iter().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (series, rest) = line.split_once("} ").expect("it has labels");
            let (value, time) = rest.split_once(' ').expect("it has a time");
            (
                labels(series),
                milliseconds(time),
                value.parse().expect("a number"),
            )
        })
        .collect()
}

/// What promtool made of a file, by its own word.
fn queried(file: &Path, folder: &Path) -> Vec<Sample> {
    let blocks = folder.join("blocks");
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([file, &blocks])
        .output();
    succeeded(&made.expect("promtool is installed (Debian package prometheus)"));
    // It reads a database, and one without a log has none to read.
    std::fs::create_dir_all(blocks.join("wal")).expect("a folder can be made");
    let dump = Command::new("promtool")
        .args(["tsdb", "dump"])
        .arg(&blocks)
        .output();
    let dump = succeeded(&dump.expect("promtool is there"));
    let sample = |line: &str| {
        let (series, rest) = line.split_once("} ").expect("it has labels");
        let (value, time) = rest.split_once(' ').expect("it has a time");
        (
            labels(series),
            time.parse().expect("a time"),
            value.parse().expect("a number"),
        )
    };
    dump.lines().map(sample).collect()
}

#[test]
#[ignore = "./x formats: needs promtool"]
fn prometheus_takes_openmetrics_and_gives_the_values_back() {
    let recorded = recorded();
    let file = export(&recorded, "openmetrics", &[]);
    let text = lines_of(&file);
    assert_eq!(text.last().map(String::as_str), Some("# EOF"));
    let mut exported = exported(&text);
    let mut queried = queried(&file, recorded.state.path());
    assert!(exported.len() > 60_000, "{} samples", exported.len());
    for samples in [&mut exported, &mut queried] {
        samples.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    }
    assert_eq!(queried.len(), exported.len());
    for (found, right) in queried.iter().zip(&exported) {
        assert_eq!((&found.0, found.2), (&right.0, right.2));
        // promtool calculates milliseconds in floating point, and cuts.
        assert!((found.1 - right.1).abs() <= 1, "{found:?} {right:?}");
    }
    // They go on where those of a scrape end, under the same names and labels.
    let served = recorded.served.iter().filter(|series| series.contains('{'));
    let served: BTreeSet<_> = served.map(|series| labels(series)).collect();
    let names: BTreeSet<_> = queried.iter().map(|sample| &sample.0).collect();
    let strange: Vec<_> = names.iter().filter(|name| !served.contains(**name)).collect();
    assert_eq!(strange, Vec::<&&BTreeMap<String, String>>::new());
    // Against the readings themselves, in base units.
    for (counter, name, more, base) in [
        (
            "rx_bytes_phy",
            "rocewatch_port_bytes_total",
            &[("direction", "rx")][..],
            1.0,
        ),
        ("np_cnp_sent", "rocewatch_cnp_sent_total", &[], 1.0),
        (
            "rx_prio3_pause_duration",
            "rocewatch_pfc_pause_seconds_total",
            &[("direction", "rx"), ("priority", "3")],
            1e6,
        ),
    ] {
        let wanted = [("__name__", name), ("device", "mlx5_1")];
        let has = |labels: &BTreeMap<String, String>| {
            let mut all = wanted.iter().chain(more);
            all.all(|(label, value)| labels.get(*label).is_some_and(|found| found == value))
        };
        let found = queried
            .iter()
            .filter(|sample| has(&sample.0))
            .map(|sample| sample.2);
        let options = ["--signal", counter, "--port", "mlx5_1"];
        let csv = lines_of(&export(&recorded, "csv", &options));
        let value = |line: &String| line.split(',').nth(8).and_then(|value| value.parse::<f64>().ok());
        let right: Vec<f64> = csv
            .iter()
            .skip(1)
            .filter_map(value)
            .map(|value| value / base)
            .collect();
        assert!(right.len() > 500, "{counter}");
        assert_eq!(found.collect::<Vec<_>>(), right, "{counter}");
    }
}
