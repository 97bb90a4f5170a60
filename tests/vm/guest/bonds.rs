//! Bonds that are built of NICs and taken apart while the daemon is scraped.

use super::bench::{NICS, calm, device, netdev_of, series_with, shell, wait_for};
use super::scraper::{settled, shows_signed, watch};
use super::support::Metrics;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);

/// Each member with its own counters and its own netdev.
fn members_are_shown(metrics: &Metrics) -> bool {
    [2, 3].into_iter().all(|nic| {
        let device = device(nic);
        shows_signed(metrics, &device, nic)
            && netdev_of(metrics, &device) == Some(format!("rail{nic}"))
            && metrics.get("rocewatch_port_up", &[("device", device.as_str())]) == Some(1.0)
    })
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_bond_is_built_and_taken_apart() {
    calm();
    let daemon = settled();
    let scraper = watch(&daemon);
    for mode in ["active-backup", "802.3ad", "balance-xor"] {
        shell(&format!(
            "ip link add bond7 type bond mode {mode} miimon 100 && for nic in rail2 rail3; do \
             ip link set $nic down && ip link set $nic master bond7; done && ip link set bond7 up && \
             ip addr add 10.1.0.1/24 dev bond7"
        ));
        wait_for(&daemon, "the members under the bond", LIMIT, |_, metrics| {
            members_are_shown(metrics)
        });
        // The bond itself is no port.
        let text = daemon.text("/metrics");
        assert_eq!(series_with(&text, "netdev", "bond7"), 0);
        assert_eq!(series_with(&text, "device", "bond7"), 0);
        shell("ip link del bond7; ip link set rail2 up; ip link set rail3 up");
        wait_for(&daemon, "the members without the bond", LIMIT, |_, metrics| {
            members_are_shown(metrics)
        });
    }
    scraper.finish();
    let ports = daemon.scrape();
    assert_eq!(ports.all("rocewatch_port_info", &[]).count(), NICS);
}
