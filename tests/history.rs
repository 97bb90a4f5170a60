//! What the daemon keeps on disk, and what `rocewatch history` tells of it.

#![allow(clippy::disallowed_methods)] // tests wait and look at files

mod support;

use serde_json::Value;
use std::path::Path;
use support::{Daemon, run};

fn text(path: &Path) -> &str {
    path.to_str().expect("paths are text")
}

#[track_caller]
fn history(state: &Path, arguments: &[&str]) -> String {
    let archive = state.join("archive");
    // The simulated clock runs ahead of the wall's.
    let all = [
        "history",
        "--since",
        "-1h",
        "--until",
        "2100-01-01 00:00",
        "--archive",
        text(&archive),
    ];
    let output = run(&[&all, arguments].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Packets that a port received, each second.
fn values(state: &Path) -> Vec<u64> {
    let arguments = ["--port", "mlx5_1", "--signal", "packets.rx", "--format", "json"];
    let series: Vec<Value> = serde_json::from_str(&history(state, &arguments)).expect("it prints JSON");
    let port = series
        .iter()
        .find(|series| series["counter"] == "rx_packets_phy")
        .expect("the port's packets are archived");
    assert_eq!(port["device"], "mlx5_1");
    let points = port["points"].as_array().expect("points");
    let values: Vec<_> = points
        .iter()
        .map(|point| point["value"].as_u64().expect("a number"))
        .collect();
    assert!(values.is_sorted(), "it only grows");
    values
}

#[test]
fn history_outlives_the_daemon_that_recorded_it() {
    let state = tempfile::tempdir().unwrap();
    let daemon = Daemon::storm(state.path());
    daemon.wait_for_rows(500.0);
    // Beside the daemon.
    let first = loop {
        let values = values(state.path());
        if values.len() > 10 {
            break values;
        }
    };
    daemon.signal("KILL");
    drop(daemon);
    // What was in the archive before still is, and the next daemon goes on.
    let after = values(state.path());
    assert_eq!(after[..first.len()], first);
    let daemon = Daemon::storm(state.path());
    daemon.wait_for_rows(100.0);
    let (status, _) = daemon.terminate();
    assert_eq!(status, Some(0));
    let archive = state.path().join("archive");
    let again = run(&["history", "--archive", text(&archive), "--port", "mlx5_7"]);
    let complaint = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(complaint.contains("it has mlx5_0, mlx5_1"), "{complaint}");
}

#[test]
fn the_table_names_what_moved_and_csv_has_every_value() {
    let state = tempfile::tempdir().unwrap();
    let daemon = Daemon::storm(state.path());
    daemon.wait_for_rows(1000.0);
    let table = history(state.path(), &["--port", "mlx5_0", "--all"]);
    assert!(
        table.contains("mlx5_0/1") && table.contains("rx_packets_phy"),
        "{table}"
    );
    assert!(!table.contains("mlx5_1"), "{table}");
    let csv = history(state.path(), &["--signal", "cnp.tx", "--format", "csv"]);
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("time,device,port,netdev,source,counter,signal,unit,value,low,high")
    );
    let line = lines.next().expect("a value");
    let fields: Vec<_> = line.split(',').collect();
    assert_eq!(fields.len(), 11);
    assert_eq!(fields[4..8], ["hw_counters", "np_cnp_sent", "cnp.tx", "packets"]);
    fields[8].parse::<u64>().expect("a number");
}

/// A receiver that another node's incast pauses, half a simulated hour into a quiet time.
#[test]
fn what_moved_first_comes_first() {
    let state = tempfile::tempdir().unwrap();
    let daemon = Daemon::storm(state.path());
    daemon.wait_for_rows(2500.0);
    drop(daemon);
    let every: Vec<Value> = serde_json::from_str(&history(
        state.path(),
        &["--signal", "cnp.tx", "--format", "json"],
    ))
    .unwrap();
    let points = every[0]["points"].as_array().expect("points");
    let time = |at: usize| points[at]["time"].as_str().expect("a time").to_owned();
    let archive = state.path().join("archive");
    let (from, to) = (time(points.len() / 2), time(points.len() - 1));
    let span = ["--since", &from, "--until", &to, "--archive", text(&archive)];
    let output = run(&[&["history", "--what-moved"], &span[..]].concat());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let delays: Vec<u64> = said
        .lines()
        .filter_map(|line| line.split_once('+')?.1.split_once(" s")?.0.parse().ok())
        .collect();
    assert!(delays.is_sorted(), "{said}");
    assert!(delays.first().is_none_or(|first| *first == 0), "{said}");
}

#[test]
fn an_archive_of_some_minutes_is_compared_with_what_it_has() {
    let state = tempfile::tempdir().unwrap();
    let daemon = Daemon::storm(state.path());
    daemon.wait_for_rows(1500.0);
    drop(daemon);
    // All of it: nothing is new, since nothing is known of the time before.
    let whole = history(state.path(), &[]);
    assert!(whole.contains("nothing before this time"), "{whole}");
    let factors = |table: &str| table.lines().filter(|line| line.contains(" new  ")).count();
    assert_eq!(factors(&whole), 0, "{whole}");
    let steady = "counters did not change their course; --all shows those that moved";
    assert!(whole.contains(steady), "{whole}");
    // The later part of it, against the earlier part, which is shorter than an hour.
    let csv = history(state.path(), &["--signal", "packets.rx", "--format", "csv"]);
    let times: Vec<_> = csv
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    let archive = state.path().join("archive");
    let middle = times[times.len() / 4];
    let span = [
        "--since",
        middle,
        "--until",
        "2100-01-01 00:00",
        "--archive",
        text(&archive),
    ];
    let later = run(&[&["history"], &span[..]].concat());
    let later = String::from_utf8(later.stdout).expect("it prints text");
    let head = later.lines().next().expect("a head");
    let (_, with) = head
        .split_once(", compared with the ")
        .unwrap_or_else(|| panic!("{later}"));
    assert!(
        with.ends_with("minutes before") || with.ends_with("seconds before"),
        "{later}"
    );
}

#[test]
fn two_daemons_do_not_write_one_archive() {
    let state = tempfile::tempdir().unwrap();
    let _daemon = Daemon::storm(state.path());
    let output = run(&["demo", "--listen", "127.0.0.1:0", "--state", text(state.path())]);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(
        complaint.contains("another rocewatch writes this archive"),
        "{complaint}"
    );
}

#[test]
fn a_mistake_is_answered_with_what_is_right() {
    let nowhere = run(&["history", "--archive", "/nowhere/archive"]);
    let complaint = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(complaint.contains("/nowhere/archive"), "{complaint}");
    let soon = run(&["history", "--at", "soon"]);
    let complaint = String::from_utf8_lossy(&soon.stderr).into_owned();
    assert_eq!(soon.status.code(), Some(64));
    assert!(complaint.contains("yesterday 03:12"), "{complaint}");
}
