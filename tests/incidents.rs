//! What happened, as an operator finds it: events, incidents, and the page that tells of one.
#![allow(clippy::disallowed_methods)] // it starts the program and waits

#[path = "support/mod.rs"]
mod support;

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::Daemon;

const BINARY: &str = env!("CARGO_BIN_EXE_rocewatch");
/// A minute after a storm in a quarter of one.
const SPEED: &str = "4";

fn demo(state: &Path, scenario: &str) -> Daemon {
    let state = state.to_str().expect("it is text");
    let daemon = Daemon::start(&["demo", "--scenario", scenario, "--speed", SPEED, "--state", state]);
    daemon.wait_until_ready();
    daemon
}

fn ask(arguments: &[&str], state: &Path) -> String {
    let archive = state.join("archive");
    let output = Command::new(BINARY)
        .args(arguments)
        .arg("--archive")
        .arg(&archive)
        .output()
        .expect("the program starts");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("it prints text")
}

fn json(arguments: &[&str], state: &Path) -> Value {
    serde_json::from_str(&ask(arguments, state)).expect("it prints JSON")
}

/// Waits until the first incident has its rows.
fn wait_for_incident(daemon: &Daemon, state: &Path) {
    daemon.wait_for_log("an incident is kept");
    assert_eq!(
        json(&["incidents", "--json"], state).as_array().map(Vec::len),
        Some(1)
    );
}

/// Nanoseconds since 1970 of a time in JSON.
fn time(value: &Value) -> i128 {
    let text = value.as_str().expect("a time is text");
    text.parse::<jiff::Timestamp>()
        .expect("it is RFC 3339")
        .as_nanosecond()
}

#[test]
fn a_storm_is_an_incident_with_its_times_first_mover_and_verdict() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo(state.path(), "pfc-storm");
    wait_for_incident(&daemon, state.path());
    let (status, _) = daemon.terminate();
    assert_eq!(status, Some(0));

    let report = json(&["incident", "show", "last", "--json"], state.path());
    let events = report["incident"]["events"].as_array().unwrap();
    let event = events
        .iter()
        .find(|event| event["event"] == "pfc_storm")
        .expect("the storm is part of it");
    assert_eq!(
        (&event["device"], &event["direction"], &event["priority"]),
        (&"mlx5_5".into(), &"rx".into(), &3.into())
    );
    // Rows of every port from up to a minute before to a minute after.
    let (began, rows) = (time(&event["began"]), &report["rows"]);
    assert!(time(&rows["to"]) - began > 59_000_000_000, "{rows}");
    assert!(time(&rows["from"]) < began - 5_000_000_000, "{rows}");
    assert_eq!(report["ports"].as_array().map(Vec::len), Some(8));
    assert_eq!(
        report["incident"]["ports"][0]["pfc_priorities"],
        serde_json::json!([3])
    );

    let verdict = &report["verdicts"][0];
    assert_eq!(
        (&verdict["verdict"], &verdict["device"], &verdict["confidence"]),
        (&"fabric_pauses".into(), &"mlx5_5".into(), &"high".into())
    );
    let first = &report["moved"][0];
    let signal = first["signal"].as_str().unwrap();
    assert!(
        first["device"] == "mlx5_5" && signal.starts_with("pfc.rx_"),
        "{:#}",
        report["moved"]
    );
    let off = (time(&first["at"]) - began).abs();
    // On a fast clock a busy machine samples coarsely; the guest holds the times to one sample.
    assert!(off <= 2_000_000_000, "the first mover is {off} ns off");

    holders_are_those_of_the_job(&report["incident"]["holders"]);

    let page = ask(&["incident", "show", "last"], state.path());
    for part in [
        "VERDICT",
        "The fabric holds this node back (mlx5_5/1 priority 3; confidence high)",
        "TIMELINE",
        "PFC storm rx priority 3: begins",
        "WHAT MOVED FIRST",
        "PORTS",
        // Of all devices the one that the storm is on comes first.
        "  mlx5_5  9 queue pairs
    python3 (process 41212)  container 8f14e45fceea (containerd)  pod 6f4922f4-5568-4a1f-a3c6-ad9d4e3a9b1e
      8 RC RTS on port 1
    the kernel: ib_core
      1 GSI RTS on port 1
  mlx5_0  9 queue pairs
    python3 (process 41207)",
    ] {
        assert!(page.contains(part), "{part:?} is missing in\n{page}");
    }

    // Elsewhere, one file says the same.
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("storm.incident");
    let file = file.to_str().unwrap();
    ask(&["incident", "export", "last", file], state.path());
    assert_eq!(ask(&["incident", "show", file], elsewhere.path()), page);
}

/// What the simulated server holds: the kernel's queue pair for management, and eight of a rank of the job, on each device.
fn holders_are_those_of_the_job(holders: &Value) {
    let devices = holders["devices"].as_array().expect("they were asked");
    assert_eq!(devices.len(), 8);
    for (rank, device) in devices.iter().enumerate() {
        let right = serde_json::json!({
            "device": format!("mlx5_{rank}"),
            "queue_pairs": 9,
            "owners": [
                {
                    "owner": "process",
                    "pid": 41207 + rank,
                    "comm": "python3",
                    "container": "8f14e45fceea167a5a36dedd4bea2543c9f0f895fb98ab9159f51fd0297e236d",
                    "runtime": "containerd",
                    "pod": "6f4922f4-5568-4a1f-a3c6-ad9d4e3a9b1e",
                    "slurm_job": null,
                    "network_namespace": null,
                    "queue_pairs": [{ "count": 8, "type": "RC", "state": "RTS", "port": 1 }]
                },
                {
                    "owner": "kernel",
                    "kernel": "ib_core",
                    "queue_pairs": [{ "count": 1, "type": "GSI", "state": "RTS", "port": 1 }]
                }
            ]
        });
        assert_eq!(*device, right);
    }
}

#[test]
fn a_slow_receiver_is_told_from_a_slow_fabric() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo(state.path(), "slow-receiver");
    wait_for_incident(&daemon, state.path());
    daemon.terminate();
    let report = json(&["incident", "show", "last", "--json"], state.path());
    let verdicts: Vec<_> = report["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|verdict| verdict["verdict"].as_str())
        .collect();
    assert!(
        verdicts.contains(&"host_is_slow") && !verdicts.contains(&"fabric_pauses"),
        "{verdicts:?}"
    );
}

#[test]
fn an_event_whose_end_nobody_saw_is_not_going_on_for_ever() {
    let state = tempfile::tempdir().unwrap();
    let daemon = demo(state.path(), "pfc-storm");
    daemon.wait_for_log("PFC storm: begun");
    let end = Instant::now() + Duration::from_secs(20);
    let arguments = [
        "events",
        "--kind",
        "pfc_storm",
        "--until",
        "2999-01-01 00:00",
        "--json",
    ];
    while json(&arguments, state.path())
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        assert!(Instant::now() < end, "the event was not kept");
    }
    let open = json(&arguments, state.path());
    assert!(open[0].get("ended").is_none(), "{open}");
    daemon.signal("KILL");
    drop(daemon);
    let daemon = demo(state.path(), "healthy");
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let events = json(&arguments, state.path());
        if events[0]["end_not_seen"] == true {
            assert!(time(&events[0]["ended"]) >= time(&events[0]["began"]));
            assert_eq!(events[0]["id"], open[0]["id"]);
            break;
        }
        assert!(Instant::now() < end, "{events}");
    }
    daemon.terminate();
    assert!(ask(&["events", "--until", "2999-01-01 00:00"], state.path()).contains("not seen"));
}
