//! What `rocewatch doctor` and the daemon say of captures and of the simulated server, and how the command ends.

#![allow(clippy::disallowed_methods)] // tests start processes and write files

mod support;
#[path = "support/tree.rs"]
mod tree;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;
use support::{Daemon, run};

fn capture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/doctor")
        .join(name);
    path.to_str().expect("paths are text").to_owned()
}

/// `rocewatch doctor` on a capture, which does not change while it is watched.
fn doctor(capture_name: &str, arguments: &[&str]) -> Output {
    let capture = capture(capture_name);
    let mut all = vec!["doctor", "--for", "100ms", "--replay", &capture];
    all.extend(arguments);
    run(&all)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The checks that a JSON answer names, with their devices.
fn checks(output: &Output) -> BTreeSet<(String, String)> {
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let said = |said: &serde_json::Value| {
        let word = |key: &str| said[key].as_str().unwrap_or("node").to_owned();
        (word("check"), word("device"))
    };
    ["findings", "verdicts"]
        .iter()
        .flat_map(|list| report[list].as_array().expect("a list"))
        .map(said)
        .collect()
}

#[test]
fn a_node_as_it_should_be_has_nothing_wrong_and_ends_with_0() {
    let output = doctor("well", &["--format", "json"]);
    assert_eq!(checks(&output), BTreeSet::new());
    assert_eq!(output.status.code(), Some(0));
    let output = doctor("well", &[]);
    assert_eq!(text(&output), "2 RoCE ports: nothing wrong was found.\n");
}

#[test]
fn a_node_that_nobody_set_up_has_all_of_it_found() {
    let output = doctor("sick", &["--format", "json"]);
    let right = [
        ("pfc_on_all", "mlx5_1"),
        ("pfc_rails_differ", "mlx5_1"),
        ("pause_beside_pfc", "mlx5_0"),
        ("storm_prevention_off", "mlx5_0"),
        ("dcbx_not_host", "mlx5_0"),
        ("dcbx_not_host", "mlx5_1"),
        ("trust_pcp", "mlx5_0"),
        ("class_starved", "mlx5_0"),
        ("ecn_np_off", "mlx5_0"),
        ("link_slow", "mlx5_1"),
        ("link_lanes", "mlx5_1"),
        ("mtu_small", "mlx5_0"),
        ("mtu_small", "mlx5_1"),
        ("pcie_narrow", "mlx5_0"),
        ("pcie_below_line", "mlx5_0"),
        ("pcie_errors", "mlx5_0"),
        // By configuration space, which a capture has if root took it.
        ("pcie_payload", "mlx5_0"),
        ("pcie_read_request", "mlx5_0"),
        ("acs_redirect", "mlx5_0"),
        ("iommu_translates", "mlx5_0"),
        ("iommu_translates", "mlx5_1"),
        ("gid_missing", "mlx5_1"),
        ("cm_roce_mode", "mlx5_0"),
        ("gpudirect_missing", "node"),
        ("gpu_far", "mlx5_1"),
        ("firmware_differs", "mlx5_1"),
    ];
    let right: BTreeSet<_> = right
        .iter()
        .map(|(check, device)| ((*check).to_owned(), (*device).to_owned()))
        .collect();
    assert_eq!(checks(&output), right);
    assert_eq!(output.status.code(), Some(2), "there are errors");
}

#[test]
fn the_exit_status_follows_fail_on() {
    let status = |capture, fail_on| doctor(capture, &["--fail-on", fail_on]).status.code();
    assert_eq!(status("sick", "never"), Some(0));
    assert_eq!(status("sick", "error"), Some(2));
    assert_eq!(status("well", "note"), Some(0));
}

#[test]
fn people_are_told_the_evidence_the_reason_and_the_command() {
    let output = doctor("sick", &[]);
    let text = text(&output);
    for words in [
        "error: PFC is on for all eight priorities [pfc_on_all]",
        "mlx5_1 (rail1)  PFC (DCB pfc_en): 0xff",
        "dcb pfc set dev rail1 prio-pfc all:off 3:on",
        "ip link set dev rail0 mtu 9000",
        "2 RoCE ports: ",
    ] {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "colour without a terminal");
    let (errors, warnings) = (text.find("error: "), text.find("warning: "));
    assert!(errors < warnings, "the worst comes first");
}

#[test]
fn junit_has_a_test_case_for_each_check() {
    let output = doctor("sick", &["--format", "junit"]);
    let text = text(&output);
    assert_eq!(text.matches("<testcase ").count(), ::doctor::CHECKS.len());
    assert_eq!(
        text.matches("<testcase ").count(),
        text.matches("</testcase>").count() + text.matches("\"/>").count()
    );
    assert!(text.contains("<failure type=\"error\" message=\"mlx5_1: PFC is on for all eight priorities\">"));
    assert!(text.contains("<testcase classname=\"PFC and buffers\" name=\"pfc_off\"/>"));
}

#[test]
fn a_policy_makes_another_fabric_a_healthy_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rocewatch.toml");
    let with = |text: &str| {
        std::fs::write(&path, text).unwrap();
        checks(&doctor(
            "well",
            &["--format", "json", "--config", path.to_str().unwrap()],
        ))
    };
    let planned = with("[policy]\nlossless = [4]\nspeed_gbps = 800\n");
    assert!(
        planned.contains(&("pfc_other_priority".to_owned(), "mlx5_0".to_owned())),
        "{planned:?}"
    );
    assert!(
        planned.contains(&("link_slow".to_owned(), "mlx5_1".to_owned())),
        "{planned:?}"
    );
    assert_eq!(
        with("[policy]\nlossless = [3]\ndscp = 26\nspeed_gbps = 400\n"),
        BTreeSet::new()
    );
}

#[test]
fn a_check_is_explained_and_a_wrong_name_gets_the_nearest() {
    let output = run(&["doctor", "--explain", "trust_pcp"]);
    assert!(output.status.success());
    assert!(
        text(&output).starts_with("trust_pcp (Trust, DSCP and classes)"),
        "{}",
        text(&output)
    );
    let output = run(&["doctor", "--explain", "trust"]);
    assert_eq!(output.status.code(), Some(64));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("trust_pcp"), "{said}");
}

#[test]
fn without_an_rdma_device_one_line_says_so() {
    let tree = tree::lay_out_text(
        "devices/pci0000:00/0000:03:00.0/net/eth0/device -> ../../../0000:03:00.0\n\
         devices/pci0000:00/0000:03:00.0/net/eth0/ifindex = 2\n\
         devices/pci0000:00/0000:03:00.0/net/eth0/type = 1\n\
         devices/pci0000:00/0000:03:00.0/net/eth0/operstate = up\n\
         class/net/eth0 -> ../../devices/pci0000:00/0000:03:00.0/net/eth0\n",
    );
    let output = run(&["doctor", "--sysfs", tree.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output), "No RDMA device with RoCE: nothing to check.\n");
}

#[test]
fn the_daemon_tells_what_is_wrong_and_where() {
    let daemon = Daemon::start(&["demo", "--scenario", "pfc-all-priorities", "--ports", "2"]);
    let is_found = |metrics: &support::Metrics| {
        let labels = [
            ("check", "pfc_on_all"),
            ("device", "mlx5_1"),
            ("severity", "error"),
        ];
        metrics.get("rocewatch_doctor_finding", &labels) == Some(1.0)
    };
    daemon.wait_for("the doctor has looked", Duration::from_secs(30), is_found);
    let report: serde_json::Value = serde_json::from_str(&daemon.text("/api/v1/findings")).expect("JSON");
    let first = &report["findings"][0];
    assert_eq!(first["check"], "pfc_on_all");
    assert_eq!(
        first["evidence"][0]["says"],
        "0xff: priorities 0, 1, 2, 3, 4, 5, 6, 7"
    );
    assert!(report["looked_seconds_ago"].is_number());
    assert!(daemon.log().contains("pfc_on_all"), "{}", daemon.log());
}
