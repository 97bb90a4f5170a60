//! A driver that became slow takes no more of the node's time than its share.

use super::bench::{calls, calm, daemon_with, sleep, steer};
use super::support::{Daemon, Metrics};
use std::time::{Duration, Instant};

/// Shares in percent: more than the defaults, so that under emulation there are reads enough to measure.
const DEVICE: f64 = 10.0;
const RTNL: f64 = 5.0;
/// Over what the shares are measured.
const SPAN: u64 = 20;

fn interval(metrics: &Metrics, source: &str) -> f64 {
    let labels = [("device", "mlx5_0"), ("source", source)];
    metrics.value("rocewatch_source_interval_seconds", &labels)
}

/// Seconds that the driver has held the kernel: under rtnl, and in RDMA.
fn held() -> [f64; 2] {
    let of = calls("mlx5_0");
    [of["stalled_eth_ns"], of["stalled_hw_ns"]].map(|nanoseconds| nanoseconds as f64 / 1e9)
}

/// Seconds that the sources' reads took, as the daemon tells it.
fn read_seconds(metrics: &Metrics, sources: &[&str]) -> f64 {
    sources
        .iter()
        .flat_map(|source| {
            let labels = [("source", *source)];
            let found: Vec<_> = metrics
                .all("rocewatch_source_read_seconds_sum", &labels)
                .map(|(_, seconds)| seconds)
                .collect();
            found
        })
        .sum()
}

/// Percent of the time that the driver holds from now on: under rtnl, and in RDMA.
fn shares(daemon: &Daemon) -> [f64; 2] {
    let rtnl = ["ethtool", "settings", "dcb"];
    let (began, before, first) = (Instant::now(), held(), daemon.scrape());
    sleep(SPAN);
    let (span, after, last) = (began.elapsed().as_secs_f64(), held(), daemon.scrape());
    let told = (read_seconds(&last, &rtnl) - read_seconds(&first, &rtnl)) / span * 100.0;
    let shares = [0, 1].map(|at| (after[at] - before[at]) / span * 100.0);
    println!(
        "held under rtnl {:.2} %, in RDMA {:.2} %; the daemon's own sum under rtnl {told:.2} %",
        shares[0], shares[1]
    );
    shares
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_driver_that_became_slow_is_read_more_rarely() {
    calm();
    let daemon = daemon_with(&format!(
        "[devices]\ninclude = [\"mlx5_0\", \"mlx5_1\"]\n\
         [sampling]\ndevice_duty_percent = {DEVICE:.1}\nrtnl_duty_percent = {RTNL:.1}\nport_counters = \"1h\"\n"
    ));
    sleep(12);
    let usual = daemon.scrape();
    // Well above what a read takes under emulation, on a bad day 13 ms.
    steer("mlx5_0 !stall_eth_ms 40;mlx5_0 !stall_hw_ms 50");
    // A cost is believed within some 24 reads.
    sleep(25);
    let [rtnl, rdma] = shares(&daemon);
    let slow = daemon.scrape();
    for source in ["ethtool", "hw_counters"] {
        println!(
            "{source} every {} s, before every {} s",
            interval(&slow, source),
            interval(&usual, source)
        );
        assert!(
            interval(&slow, source) > 2.0 * interval(&usual, source),
            "{source} is not slowed"
        );
    }
    // One read more or less at the ends of the span.
    assert!(
        rtnl <= RTNL + 100.0 * 0.044 / SPAN as f64,
        "{rtnl} % of the time under rtnl"
    );
    assert!(
        rdma <= DEVICE + 100.0 * 0.056 / SPAN as f64,
        "{rdma} % of the time in RDMA"
    );
    assert!(rtnl > RTNL / 4.0 && rdma > DEVICE / 4.0, "it is still read");
    let log = daemon.log();
    for device in ["rtnl", "mlx5_0"] {
        let told = |line: &&str| {
            line.contains("are read less often than wanted")
                && line.contains(&format!("\"lane\":\"{device}\""))
        };
        assert!(log.lines().any(|line| told(&line)), "{device}: {log}");
    }

    steer("mlx5_0 !stall_ms 0");
    daemon.wait_for(
        "it is read as often as before",
        Duration::from_secs(90),
        |metrics| {
            ["ethtool", "hw_counters"]
                .into_iter()
                .all(|source| interval(metrics, source) < 1.5 * interval(&usual, source))
        },
    );
}
