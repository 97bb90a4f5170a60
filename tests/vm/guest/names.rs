//! Devices that are given other names while the daemon is scraped.

use super::bench::{NICS, calm, device, netdev_of, series_with, shell, wait_for};
use super::scraper::{settled, shows_signed, watch, watch_those};
use super::support::Metrics;
use std::time::Duration;

/// A netdev's new name is told by the kernel and shown within this.
const TOLD: Duration = Duration::from_secs(15);

/// Kernels before 6.2 rename a netdev only while it is down.
fn rename(from: &str, to: &str) {
    shell(&format!(
        "ip link set {from} down && ip link set {from} name {to} && ip link set {to} up"
    ));
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_netdev_is_renamed() {
    calm();
    let daemon = settled();
    let scraper = watch(&daemon);
    rename("rail3", "storage0");
    let shown = |metrics: &Metrics, name: &str| {
        netdev_of(metrics, "mlx5_3").as_deref() == Some(name) && shows_signed(metrics, "mlx5_3", 3)
    };
    wait_for(&daemon, "the new name", TOLD, |_, metrics| {
        shown(metrics, "storage0")
    });
    wait_for(&daemon, "nothing under the old name", TOLD, |text, _| {
        series_with(text, "netdev", "rail3") == 0
    });
    rename("storage0", "rail3");
    wait_for(&daemon, "the old name again", TOLD, |_, metrics| {
        shown(metrics, "rail3")
    });
    scraper.finish();
}

/// What was opened by name would read the other NIC's counters.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn two_netdevs_change_names() {
    calm();
    let daemon = settled();
    let scraper = watch(&daemon);
    for _ in 0..3 {
        shell(
            "ip link set rail1 down; ip link set rail2 down; ip link set rail1 name other; \
             ip link set rail2 name rail1; ip link set other name rail2; ip link set rail1 up; ip link set rail2 up",
        );
    }
    wait_for(&daemon, "each with its name", TOLD, |_, metrics| {
        netdev_of(metrics, "mlx5_1").as_deref() == Some("rail2")
            && netdev_of(metrics, "mlx5_2").as_deref() == Some("rail1")
            && shows_signed(metrics, "mlx5_1", 1)
            && shows_signed(metrics, "mlx5_2", 2)
    });
    scraper.finish();
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn an_rdma_device_is_renamed() {
    calm();
    let daemon = settled();
    let mut devices: Vec<_> = (1..NICS).map(|nic| (device(nic), nic)).collect();
    devices.push(("roce4".to_owned(), 4));
    let scraper = watch_those(&daemon, devices);
    shell("rdma dev set mlx5_4 name roce4");
    wait_for(
        &daemon,
        "the new name and nothing under the old one",
        TOLD,
        |text, metrics| series_with(text, "device", "mlx5_4") == 0 && shows_signed(metrics, "roce4", 4),
    );
    shell("rdma dev set roce4 name mlx5_4");
    wait_for(&daemon, "the old name again", TOLD, |text, metrics| {
        series_with(text, "device", "roce4") == 0 && shows_signed(metrics, "mlx5_4", 4)
    });
    scraper.finish();
}

/// For the moment until the daemon has looked again the names are the old ones; afterwards each value is under the name
/// that its device has now.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn two_rdma_devices_change_names() {
    calm();
    let daemon = settled();
    shell("rdma dev set mlx5_1 name other; rdma dev set mlx5_2 name mlx5_1; rdma dev set other name mlx5_2");
    wait_for(&daemon, "each with its name", TOLD, |_, metrics| {
        shows_signed(metrics, "mlx5_1", 2)
            && shows_signed(metrics, "mlx5_2", 1)
            && netdev_of(metrics, "mlx5_1").as_deref() == Some("rail2")
    });
}
