//! A storm that the NICs count is an event and an incident, with the times at which it was made.

use super::bench::{EAGER, NICS, calm, daemon_at, device, sleep, steer, truth};
use super::support::{Daemon, run};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The port that the fabric stops.
const HELD: &str = "mlx5_3";

fn wall() -> i128 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is past 1970");
    i128::try_from(since.as_nanos()).expect("it fits")
}

fn time(value: &Value) -> i128 {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is no time"));
    text.parse::<jiff::Timestamp>()
        .expect("it is RFC 3339")
        .as_nanosecond()
}

fn ask(arguments: &[&str], state: &Path) -> Value {
    let archive = state.join("archive");
    let archive = archive.to_str().expect("it is text");
    let output = run(&[arguments, &["--json", "--archive", archive]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// The storm as the archive has it, once it has ended.
fn storm(state: &Path) -> Value {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let events = ask(&["events", "--kind", "pfc_storm"], state);
        if events[0].get("ended").is_some() {
            return events[0].clone();
        }
        assert!(Instant::now() < end, "the storm has no end: {events}");
        sleep(1);
    }
}

/// The longest time between two reads of the port's counters.
fn sample(daemon: &Daemon) -> i128 {
    let interval = |source| {
        let labels = [("device", HELD), ("source", source)];
        daemon
            .scrape()
            .value("rocewatch_source_interval_seconds", &labels)
    };
    let longest = Duration::from_secs_f64(interval("ethtool").max(interval("hw_counters")));
    // A read takes its time as well.
    i128::try_from(longest.as_nanos()).expect("it fits") + 100_000_000
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_storm_is_an_incident_with_the_right_times_first_mover_and_verdict() {
    calm();
    for nic in 0..NICS {
        steer(&format!(
            "mlx5_{nic} rx_bytes_phy 0 10000000000;mlx5_{nic} tx_bytes_phy 0 10000000000;\
             mlx5_{nic} rx_vport_rdma_unicast_packets 0 2500000;mlx5_{nic} tx_vport_rdma_unicast_packets 0 2500000"
        ));
    }
    let state = tempfile::tempdir().expect("/tmp is writable");
    let daemon = daemon_at(EAGER, state.path());
    // The grace of a start, and some seconds that say what is usual.
    sleep(20);
    let began = wall();
    steer(&format!(
        "{HELD} rx_prio3_pause_duration 0 1000000;{HELD} rx_prio3_pause 0 6000"
    ));
    sleep(5);
    let ended = wall();
    // A little more than it is now, since no counter goes back.
    let paused = truth(HELD)["eth.rx_prio3_pause_duration"] + 10_000.0;
    steer(&format!(
        "{HELD} rx_prio3_pause_duration {paused:.0} 0;{HELD} rx_prio3_pause 40000 0"
    ));
    let event = storm(state.path());
    assert_eq!(
        (&event["device"], &event["direction"], &event["priority"]),
        (&HELD.into(), &"rx".into(), &3.into())
    );
    let sample = sample(&daemon);
    for (what, told, made) in [
        ("began", &event["began"], began),
        ("ended", &event["ended"], ended),
    ] {
        let off = (time(told) - made).abs();
        assert!(off <= sample, "it {what} {off} ns off; a sample is {sample} ns");
        println!(
            "the storm {what} {} ms off, a sample is {} ms",
            off / 1_000_000,
            sample / 1_000_000
        );
    }
    let report = ask(&["incident", "show", "last"], state.path());
    // Nobody uses the NICs, and each of them said so in time.
    let holders = report["incident"]["holders"]["devices"]
        .as_array()
        .expect("a list");
    assert_eq!(holders.len(), NICS, "{holders:?}");
    assert!(
        holders.iter().all(|device| device["queue_pairs"].is_u64()),
        "{holders:?}"
    );
    let (first, verdict) = (&report["moved"][0], &report["verdicts"][0]);
    assert_eq!(
        (&first["device"], &verdict["device"]),
        (&HELD.into(), &HELD.into()),
        "{first} {verdict}"
    );
    assert_eq!(verdict["verdict"], "fabric_pauses");
    assert!((time(&first["at"]) - began).abs() <= sample, "{first}");
}

/// The same storm, while a command is watched.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_storm_while_a_command_runs_is_in_its_report() {
    calm();
    // Under emulation the share of time that is for reading goes a longer way with one NIC; the end of a storm is a unit test.
    for nic in (0..NICS).filter(|nic| device(*nic) != HELD) {
        steer(&format!("unplug {nic}"));
    }
    let command = format!(
        "sleep 8; echo '{HELD} rx_prio3_pause_duration +0 1000000;{HELD} rx_prio3_pause +0 6000' >/proc/fakeroce; sleep 15"
    );
    let output = run(&["watch", "--save", "/tmp/watched.json", "--", "sh", "-c", &command]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let line = format!("{HELD}/1       PFC storm rx priority 3: begins, and goes on\n");
    assert!(told.contains(&line), "{line:?} is not in\n{told}");
    let report = std::fs::read("/tmp/watched.json").expect("it was saved");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let events = report["events"].as_array().expect("a list");
    let storm = events.iter().find(|event| event["event"] == "pfc_storm");
    let storm = storm.unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!((&storm["device"], &storm["priority"]), (&HELD.into(), &3.into()));
    assert_eq!(report["verdict"], "findings");
    println!("{told}");
}
