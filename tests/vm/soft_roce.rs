//! Real RDMA traffic on soft-RoCE, inside the guest of `tests/vm`, as `./x vm` starts it.

#![allow(clippy::print_stderr)] // figures for whoever reads the test's output
#![allow(clippy::disallowed_methods)] // tests start processes and wait

#[path = "../support/mod.rs"]
mod support;

use std::process::Command;
use std::time::{Duration, Instant};
use support::Daemon;

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn traffic_of_ib_send_bw_shows_up() {
    let daemon = Daemon::start(&["run"]);
    daemon.wait_until_ready();
    let sent = [("device", "rxe0"), ("direction", "tx")];
    let received = [("device", "rxe1"), ("direction", "rx")];
    let name = "rocewatch_rdma_packets_total";
    let before = daemon.wait_for("soft-RoCE is watched", Duration::from_secs(10), |metrics| {
        metrics.get(name, &sent).is_some() && metrics.get(name, &received).is_some()
    });
    let messages = 200;
    let bandwidth_test = format!(
        "ib_send_bw -d rxe1 -x 1 -n {messages} -s 4096 >/tmp/server 2>&1 & sleep 2; \
         ib_send_bw -d rxe0 -x 1 -n {messages} -s 4096 10.8.0.2 >/tmp/client 2>&1; status=$?; wait; exit $status"
    );
    let status = Command::new("sh")
        .args(["-c", &bandwidth_test])
        .status()
        .expect("sh is there");
    assert!(
        status.success(),
        "{}",
        std::fs::read_to_string("/tmp/client").unwrap_or_default()
    );
    // Each message is four packets of the default MTU of 1024 bytes.
    let least = f64::from(messages);
    daemon.wait_for(
        "the traffic shows at both ends",
        Duration::from_secs(10),
        |after| {
            after.value(name, &sent) - before.value(name, &sent) >= least
                && after.value(name, &received) - before.value(name, &received) >= least
        },
    );
}

/// A driver may wait with the removal of a device until every program has closed it.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_device_whose_events_are_followed_can_be_removed() {
    std::fs::write("/tmp/verbs.toml", "[sampling]\nverbs = \"200ms\"\n").expect("/tmp is writable");
    let daemon = Daemon::start(&["run", "--config", "/tmp/verbs.toml"]);
    daemon.wait_until_ready();
    let labels = [("device", "rxe1"), ("event", "device_fatal")];
    daemon.wait_for("events are followed", Duration::from_secs(10), |metrics| {
        metrics.get("rocewatch_rdma_async_events_total", &labels) == Some(0.0)
    });
    let began = Instant::now();
    let rdma = |arguments: &[&str]| {
        let status = Command::new("timeout")
            .args(["20", "rdma", "link"])
            .args(arguments)
            .status()
            .expect("rdma is there");
        assert!(status.success(), "rdma link {arguments:?}\n{}", daemon.log());
    };
    rdma(&["delete", "rxe1"]);
    eprintln!("removed within {:?}", began.elapsed());
    rdma(&["add", "rxe1", "type", "rxe", "netdev", "veth1"]);
    daemon.wait_for("the new device is followed", Duration::from_secs(30), |metrics| {
        metrics.get("rocewatch_rdma_async_events_total", &labels) == Some(0.0)
    });
}
