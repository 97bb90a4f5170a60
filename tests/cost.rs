//! What a sampling round and an exposition cost, in instructions: unlike time, they hardly differ from run to run, so that
//! none can creep in unseen.
//!
//! `./x cost` counts them with callgrind and compares; `UPDATE_COST=1 ./x cost` writes `tests/cost/instructions.toml` anew.

#![allow(clippy::print_stdout)] // figures for whoever reads the test's output
#![allow(clippy::disallowed_methods)] // tests start processes and read files

#[path = "support/tree.rs"]
mod tree;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is counted, how often it is done in the shorter run, and how many times more in the longer: what both runs do
/// besides, such as starting, cancels.
const WORK: [(&str, u64, u64); 3] = [("round", 10, 100), ("encode", 10, 100), ("own", 10, 100)];
const DEVICES: usize = 8;
const RUNS: usize = 3;
/// How far a count may be from the recorded one. A few percent of an exposition are digits of the time and of the process
/// itself, and the C library's routines for copying differ from version to version.
const TOLERANCE: f64 = 0.05;
/// The same with another compiler than the one that the counts were recorded with.
const OTHER_COMPILER: f64 = 0.25;

fn recorded_at() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cost/instructions.toml")
}

/// The fixture's first port, eight times, with as many digits as the counters of a node that has been up for days.
fn eight_devices() -> tempfile::TempDir {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/mlx5/sysfs.txt");
    let text = std::fs::read_to_string(fixture).expect("the fixture is there");
    let (first, _) = text
        .split_once("# ---- port 1 ----")
        .expect("the fixture has two ports");
    let all: String = (0..DEVICES)
        .flat_map(|number| first.lines().map(move |line| line_of_device(line, number)))
        .collect();
    tree::lay_out_text(&all)
}

fn line_of_device(line: &str, number: usize) -> String {
    let is_driver = line.starts_with("bus/pci/drivers");
    if is_driver && number > 0 {
        return String::new();
    }
    let mut line = line.to_owned();
    if let Some((path, value)) = line.split_once(" = ")
        && path.contains("counters/")
        && !path.ends_with("lifespan")
    {
        line = format!(
            "{path} = {}",
            1_000_000_000_000 + value.parse::<u64>().expect("a count")
        );
    }
    // Each below a root complex of its own.
    for (old, new) in [
        ("mlx5_0", format!("mlx5_{number}")),
        ("ens0np0", format!("ens{number}np0")),
        ("aa:0000", format!("aa:{number:04x}")),
        ("ifindex = 2", format!("ifindex = {}", 2 + number)),
        ("0000:1", format!("{number:04x}:1")),
        ("pci0000:", format!("pci{number:04x}:")),
    ] {
        line = line.replace(old, &new);
    }
    line + "\n"
}

/// Instructions of one run, by callgrind.
fn instructions(program: &str, what: &str, tree: &Path, times: u64) -> u64 {
    let run = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            program,
            what,
        ])
        .arg(tree)
        .arg(times.to_string())
        .output()
        .expect("valgrind is installed: ./x cost does it");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    collected
        .and_then(|(_, count)| count.trim().parse().ok())
        .unwrap_or_else(|| panic!("callgrind tells no count: {said}"))
}

fn counted(program: &str) -> BTreeMap<String, u64> {
    let tree = eight_devices();
    let count = |(what, few, more): (&str, u64, u64)| {
        // A thread that had to wait for a busy machine counts what it did meanwhile: the least is what the work takes.
        let least = |times| {
            (0..RUNS)
                .map(|_| instructions(program, what, tree.path(), times))
                .min()
        };
        let (short, long) = (least(few).unwrap_or(0), least(few + more).unwrap_or(0));
        (what.to_owned(), (long - short) / more)
    };
    WORK.into_iter().map(count).collect()
}

fn compiler() -> String {
    let version = Command::new("rustc")
        .arg("--version")
        .output()
        .expect("rustc is there");
    String::from_utf8_lossy(&version.stdout).trim().to_owned()
}

fn record(compiler: &str, counts: &BTreeMap<String, u64>) {
    let mut text = format!(
        "# Instructions of one sampling round, of one exposition without the process's own part, and of that part, on\n\
         # {DEVICES} devices of 53 files. `UPDATE_COST=1 ./x cost` writes this file.\n\
         compiler = \"{compiler}\"\n\n[instructions]\n"
    );
    for (what, count) in counts {
        writeln!(text, "{what} = {count}").expect("writing to memory does not fail");
    }
    std::fs::write(recorded_at(), text).expect("the record can be written");
}

#[test]
#[ignore = "needs valgrind and a release build: ./x cost"]
fn a_round_and_an_exposition_take_as_many_instructions_as_recorded() {
    let program = std::env::var("COST_PROGRAM").expect("./x cost says where the program is");
    let (compiler, counts) = (compiler(), counted(&program));
    if std::env::var_os("UPDATE_COST").is_some() {
        record(&compiler, &counts);
    }
    let text = std::fs::read_to_string(recorded_at()).expect("the record is there");
    let recorded: toml::Table = text.parse().expect("the record is TOML");
    let same = recorded["compiler"].as_str() == Some(&compiler);
    let tolerance = if same { TOLERANCE } else { OTHER_COMPILER };
    if !same {
        println!(
            "recorded with {}, this is {compiler}: compared within {:.0} %",
            recorded["compiler"],
            100.0 * tolerance
        );
    }
    let mut off = Vec::new();
    for (what, count) in counts {
        let before = recorded["instructions"][&what]
            .as_integer()
            .expect("a count is recorded") as f64;
        let growth = count as f64 / before - 1.0;
        println!(
            "{what}: {count} instructions, {before} recorded ({:+.1} %)",
            100.0 * growth
        );
        if growth.abs() > tolerance {
            off.push(what);
        }
    }
    assert!(
        off.is_empty(),
        "{off:?} cost more or less than recorded: find out why; if it is worth it, UPDATE_COST=1 ./x cost records it"
    );
}
