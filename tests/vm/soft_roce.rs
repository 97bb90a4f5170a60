//! Real RDMA traffic on soft-RoCE, inside the guest of `tests/vm`, as `./x vm` starts it.

#![allow(clippy::disallowed_methods)] // tests start processes and wait

#[path = "../support/mod.rs"]
mod support;

use std::process::Command;
use std::time::Duration;
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
