//! What is read only where it is asked for: events of libibverbs, modules, optional counters.

use super::bench::{EAGER, calm, daemon_with, shell, steer};
use std::time::Duration;

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn what_is_asked_for_beyond_counters_is_shown_and_put_back() {
    calm();
    let more = format!("{EAGER}verbs = \"200ms\"\nmodule = \"10s\"\noptional_counters = true\n");
    let daemon = daemon_with(&more);
    let limit = Duration::from_secs(20);
    let name = "rocewatch_rdma_async_events_total";
    let labels = [("device", "mlx5_3"), ("event", "port_err")];
    daemon.wait_for("events are counted", limit, |metrics| {
        metrics.get(name, &labels) == Some(0.0)
    });
    steer("mlx5_3 !carrier 0;mlx5_3 !carrier 1");
    daemon.wait_for("the cable was pulled", limit, |metrics| {
        metrics.get(name, &labels) == Some(1.0)
    });
    let state = |source| {
        [
            ("device", "mlx5_3"),
            ("source", source),
            ("state", "not_applicable"),
        ]
    };
    let metrics = daemon.scrape();
    // fakeroce has neither a module nor a sensor.
    for source in ["module", "hwmon"] {
        assert_eq!(
            metrics.get("rocewatch_source_state", &state(source)),
            Some(1.0),
            "{source}: {}",
            daemon.log()
        );
    }
    shell("rdma statistic mode link mlx5_3/1 | grep -q cc_rx_cnp_pkts");
    let (status, _) = daemon.terminate();
    assert_eq!(status, Some(0));
    shell("! rdma statistic mode link mlx5_3/1 | grep -q cc_rx");
}
