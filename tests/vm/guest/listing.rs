//! What `rocewatch ports` tells of the NICs.

use super::bench::{NICS, calm};
use super::support;
use std::process::Command;

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn ports_tells_what_there_is() {
    calm();
    let output = support::run(&["ports", "--json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let ports: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let ports = ports.as_array().expect("it is a list");
    let port = ports
        .iter()
        .find(|port| port["device"] == "mlx5_4")
        .expect("mlx5_4 is listed");
    assert_eq!(ports.len(), NICS);
    assert_eq!(port["netdev"], "rail4");
    assert_eq!(port["driver"], "mlx5_core");
    assert_eq!(port["state"], "ACTIVE");
    assert_eq!(port["speed_bits_per_second"], 400_000_000_000u64);
    assert_eq!(port["pfc_priorities"], serde_json::json!([3]));
    let state = |source: &str| {
        let sources = port["sources"].as_array().expect("sources are a list");
        sources
            .iter()
            .find(|found| found["source"] == source)
            .map(|found| found["state"].clone())
    };
    for source in [
        "ethtool",
        "hw_counters",
        "port_counters",
        "link",
        "settings",
        "dcb",
    ] {
        assert_eq!(state(source), Some("active".into()), "{source}: {port}");
    }
    assert_eq!(state("device_counters"), Some("not_applicable".into()));
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn nobody_may_sample_without_privilege() {
    calm();
    // A user without any capability sees as much as root does.
    let output = Command::new("su")
        .args([
            "nobody",
            "-s",
            "/bin/sh",
            "-c",
            &format!("{} ports --json", support::binary().display()),
        ])
        .output()
        .expect("su is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert_eq!(text.matches("\"state\": \"failed\"").count(), 0, "{text}");
    assert_eq!(
        text.matches("\"source\": \"hw_counters\",\n        \"state\": \"active\"")
            .count(),
        NICS,
        "{text}"
    );
}
