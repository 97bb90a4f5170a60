//! `rocewatch capture`, and reading a capture as if it were the machine.

#![allow(clippy::disallowed_methods)] // tests write files

mod support;
#[path = "support/tree.rs"]
mod tree;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use support::{Daemon, run};

fn text(path: &Path) -> &str {
    path.to_str().expect("paths are text")
}

#[track_caller]
fn ok(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("it prints text")
}

fn json(arguments: &[&str]) -> Vec<Value> {
    serde_json::from_str(&ok(arguments)).expect("it prints JSON")
}

/// Each counter's value by device, source and name.
fn values(counters: Vec<Value>) -> BTreeMap<String, u64> {
    let word = |counter: &Value, key: &str| counter[key].as_str().expect("a word").to_owned();
    counters
        .into_iter()
        .map(|counter| {
            let name = ["device", "source", "counter"].map(|key| word(&counter, key));
            (name.join(" "), counter["value"].as_u64().expect("a number"))
        })
        .collect()
}

/// What `ports --json` says, without what measuring changes.
fn facts(mut ports: Vec<Value>) -> Vec<Value> {
    for port in &mut ports {
        for source in port["sources"].as_array_mut().expect("sources") {
            let source = source.as_object_mut().expect("an object");
            source.retain(|key, _| matches!(key.as_str(), "source" | "state"));
        }
    }
    ports
}

#[test]
fn a_capture_says_what_the_machine_says() {
    let sysfs = tree::lay_out("mlx5");
    let sysfs = text(sysfs.path());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.tar.zst");
    let file = text(&file);
    let said = ok(&["capture", file, "--raw", "--sysfs", sysfs]);
    assert!(said.contains("2 ports") && said.contains("as they are"), "{said}");

    let machine = facts(json(&["ports", "--json", "--sysfs", sysfs]));
    let replayed = facts(json(&["ports", "--json", "--replay", file]));
    assert_eq!(machine.len(), 2);
    assert_eq!(replayed, machine);

    let machine = values(json(&["counters", "--all", "--json", "--sysfs", sysfs]));
    let replayed = values(json(&["counters", "--all", "--json", "--replay", file]));
    assert!(machine.len() > 80, "{} counters", machine.len());
    assert_eq!(replayed, machine);

    let again = run(&["capture", file, "--raw", "--sysfs", sysfs]);
    let complaint = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(1));
    assert!(complaint.contains("a name that is not taken"), "{complaint}");
}

#[test]
fn a_pseudonym_stands_for_each_address() {
    if !Path::new("/etc/machine-id").exists() {
        return; // pseudonyms need a machine's secret, and the message that says so is not worth a machine without
    }
    let sysfs = tree::lay_out("mlx5");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.tar.zst");
    let file = text(&file);
    let said = ok(&["capture", file, "--sysfs", text(sysfs.path())]);
    assert!(said.contains("pseudonyms"), "{said}");
    let (machine, replayed) = (
        json(&["ports", "--json", "--sysfs", text(sysfs.path())]),
        json(&["ports", "--json", "--replay", file]),
    );
    for (real, hidden) in machine.iter().zip(&replayed) {
        assert_eq!(hidden["device"], real["device"]);
        assert_eq!(hidden["pci"], real["pci"]);
        assert_eq!(hidden["firmware"], real["firmware"]);
        assert_ne!(hidden["guid"], real["guid"]);
        let gids = |port: &Value| port["gids"].as_array().expect("GIDs").clone();
        assert_eq!(gids(hidden).len(), gids(real).len());
        for (hidden, real) in gids(hidden).iter().zip(gids(real)) {
            assert_eq!(hidden["index"], real["index"]);
            assert_ne!(hidden["gid"], real["gid"]);
        }
    }
}

/// A machine written by hand: two readings a second apart, an error in place of a reading, a file that fails.
const PARTS: [(&str, &str); 7] = [
    ("capture.toml", "format = 1\ninterval_ms = 1000\n"),
    (
        "sys.txt",
        "devices/pci0000:00/0000:10:00.0/driver -> ../../../bus/pci/drivers/mlx5_core\n\
         bus/pci/drivers/mlx5_core/\n\
         devices/pci0000:00/0000:10:00.0/class = 0x020000\n\
         devices/pci0000:00/0000:10:00.0/net/eth0/device -> ../../../0000:10:00.0\n\
         devices/pci0000:00/0000:10:00.0/net/eth0/ifindex = 2\n\
         devices/pci0000:00/0000:10:00.0/net/eth0/type = 1\n\
         devices/pci0000:00/0000:10:00.0/net/eth0/flags = 0x1003\n\
         devices/pci0000:00/0000:10:00.0/net/eth0/operstate = up\n\
         devices/pci0000:00/0000:10:00.0/net/eth0/carrier_down_count ! EIO\n\
         class/net/eth0 -> ../../devices/pci0000:00/0000:10:00.0/net/eth0\n\
         devices/pci0000:00/0000:10:00.0/infiniband/mlx5_0/node_guid = b8ce:f603:0001:0203\n\
         devices/pci0000:00/0000:10:00.0/infiniband/mlx5_0/device -> ../../../0000:10:00.0\n\
         devices/pci0000:00/0000:10:00.0/infiniband/mlx5_0/ports/1/link_layer = Ethernet\n\
         devices/pci0000:00/0000:10:00.0/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent = 7\n\
         devices/pci0000:00/0000:10:00.0/infiniband/mlx5_0/ports/1/hw_counters/rp_cnp_handled ! EINVAL\n\
         class/infiniband/mlx5_0 -> ../../devices/pci0000:00/0000:10:00.0/infiniband/mlx5_0\n",
    ),
    (
        "netdev/eth0/ethtool.1",
        "NIC statistics:\n     rx_prio3_pause: 1000\n     of_no_catalogue: 5\n",
    ),
    (
        "netdev/eth0/ethtool.2",
        "NIC statistics:\n     rx_prio3_pause: 1500\n     of_no_catalogue: 5\n",
    ),
    ("netdev/eth0/dcb.1", "ERROR: 95\n"),
    ("netdev/eth0/settings.1", "ERROR: ETIMEDOUT it took too long\n"),
    (
        "netdev/eth0/link.1",
        "     carrier: 1\n     carrier_down_count: 4\n",
    ),
];

fn written_by_hand() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in PARTS {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

#[test]
fn the_daemon_plays_a_capture_at_its_pace() {
    let folder = written_by_hand();
    let daemon = Daemon::start(&["run", "--replay", text(folder.path())]);
    daemon.wait_until_ready();
    let pause = [("device", "mlx5_0"), ("priority", "3"), ("direction", "rx")];
    let frames = "rocewatch_pfc_frames_total";
    let metrics = daemon.wait_for("PFC goes on", Duration::from_secs(10), |metrics| {
        metrics.get(frames, &pause).is_some_and(|frames| frames > 1500.0)
    });
    assert_eq!(
        metrics.get("rocewatch_cnp_sent_total", &[("device", "mlx5_0")]),
        Some(7.0)
    );
    assert_eq!(
        metrics.get("rocewatch_cnp_handled_total", &[]),
        None,
        "its file fails"
    );
    let failed = [("source", "settings"), ("reason", "ETIMEDOUT")];
    assert!(metrics.value("rocewatch_source_errors_total", &failed) >= 1.0);
    assert!(daemon.log().contains("those of a capture"), "{}", daemon.log());
    assert!(daemon.text("/").contains("those of a capture"));
}

#[test]
fn counters_of_a_capture_grow_as_they_did() {
    let folder = written_by_hand();
    let counters = json(&[
        "counters",
        "mlx5_0",
        "--all",
        "--json",
        "--replay",
        text(folder.path()),
    ]);
    let of = |name: &str| {
        counters
            .iter()
            .find(|counter| counter["counter"] == name)
            .unwrap_or_else(|| panic!("{name} is not there"))
    };
    let rate = of("rx_prio3_pause")["per_second"].as_f64().unwrap();
    assert!((rate - 500.0).abs() < 5.0, "{rate}");
    assert_eq!(of("of_no_catalogue")["value"], 5);
    assert_eq!(of("carrier_down_count")["value"], 4);
}

#[test]
fn what_is_no_capture_is_refused_with_its_fault() {
    let folder = written_by_hand();
    let refuse = |says: &str| {
        let output = run(&["ports", "--replay", text(folder.path())]);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{complaint}");
        assert!(complaint.contains(says), "{says:?} is not in: {complaint}");
    };
    std::fs::write(folder.path().join("netdev/eth0/dcb.1"), "carrier\n").unwrap();
    refuse("netdev/eth0/dcb.1: line 1");
    std::fs::write(folder.path().join("sys.txt"), "a = 1\n/b = 2\n").unwrap();
    refuse("sys.txt: line 2");
    std::fs::write(folder.path().join("capture.toml"), "format = 9\n").unwrap();
    refuse("later version");
}
