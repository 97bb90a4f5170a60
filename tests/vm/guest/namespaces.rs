//! Network namespaces: NICs that move into a pod and back, and what is seen from inside one.

use super::bench::{NICS, calm, netdev_of, series_with, shell, wait_for};
use super::scraper::{settled, shows_signed, watch};
use super::support;
use serde_json::Value;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(15);

/// What `rocewatch ports` tells in the namespace `pod`, with the sysfs at `sysfs`. `ip netns exec` gives the process a
/// mount namespace with a sysfs of its own at `/sys`, as a container runtime does.
fn ports_in_pod(sysfs: &str) -> Vec<Value> {
    let program = support::binary();
    let text = shell(&format!(
        "ip netns exec pod {} ports --json --sysfs {sysfs} 2>/tmp/ports.log",
        program.display()
    ));
    let ports: Value = serde_json::from_str(&text).expect("it is JSON");
    ports.as_array().expect("it is a list").clone()
}

fn find<'a>(ports: &'a [Value], device: &str) -> &'a Value {
    ports
        .iter()
        .find(|port| port["device"] == device)
        .unwrap_or_else(|| panic!("no {device} in {ports:?}"))
}

/// State of a source, with the reason where there is one.
fn state(port: &Value, source: &str) -> String {
    let sources = port["sources"].as_array().expect("sources are a list");
    let found = sources
        .iter()
        .find(|found| found["source"] == source)
        .unwrap_or_else(|| panic!("no {source} in {port}"));
    [&found["state"], &found["reason"]]
        .into_iter()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Makes the namespace `pod`, and binds the host's sysfs to where a `DaemonSet` mounts it.
fn make_pod() {
    shell(
        "ip netns add pod && mkdir -p /hostsys && \
         { mountpoint -q /hostsys || mount --bind /sys /hostsys; }",
    );
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_netdev_moves_into_a_pod_and_comes_back_when_the_pod_ends() {
    calm();
    let daemon = settled();
    let scraper = watch(&daemon);
    for _ in 0..2 {
        // In the pod it has the name that another NIC has here, as each pod's first netdev is its eth0.
        shell(
            "cat /sys/class/net/rail5/ifindex >/tmp/index; ip netns add pod && \
             ip link set rail5 netns pod name rail4 && ip -n pod link set rail4 up",
        );
        // Its RDMA device stays visible, so that is watched; what is asked through the netdev is not.
        wait_for(&daemon, "only RDMA is left of it", LIMIT, |_, metrics| {
            netdev_of(metrics, "mlx5_5").as_deref() == Some("")
                && metrics
                    .get(
                        "rocewatch_port_bytes_total",
                        &[("device", "mlx5_5"), ("direction", "rx")],
                    )
                    .is_none()
                && metrics
                    .get("rocewatch_cnp_sent_total", &[("device", "mlx5_5")])
                    .is_some()
        });
        let text = daemon.text("/metrics");
        assert_eq!(series_with(&text, "netdev", "rail5"), 0);
        // The namespace ends with its last process, and the kernel gives the netdev back to the first.
        // Its name is taken here, so that the kernel gives it another.
        shell(
            "ip netns del pod; for try in $(seq 100); do \
             ip link set dev$(cat /tmp/index) name rail5 2>/dev/null && exec ip link set rail5 up; \
             sleep 0.1; done; exit 1",
        );
        wait_for(&daemon, "it is whole again", LIMIT, |_, metrics| {
            netdev_of(metrics, "mlx5_5").as_deref() == Some("rail5") && shows_signed(metrics, "mlx5_5", 5)
        });
    }
    scraper.finish();
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn an_rdma_device_moves_into_a_pod_and_back() {
    calm();
    shell("rdma system set netns exclusive");
    let daemon = settled();
    let scraper = watch(&daemon);
    shell("ip netns add pod && rdma dev set mlx5_6 netns pod");
    wait_for(&daemon, "nothing of the device", LIMIT, |text, _| {
        series_with(text, "device", "mlx5_6") == 0
    });
    shell("ip link set rail6 netns pod");
    wait_for(&daemon, "nothing of the netdev", LIMIT, |text, _| {
        series_with(text, "netdev", "rail6") == 0
    });
    shell(
        "ip netns del pod; for try in $(seq 100); do ip link set rail6 up 2>/dev/null && exit; sleep 0.1; done; exit 1",
    );
    wait_for(&daemon, "it is whole again", LIMIT, |_, metrics| {
        netdev_of(metrics, "mlx5_6").as_deref() == Some("rail6") && shows_signed(metrics, "mlx5_6", 6)
    });
    scraper.finish();
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn what_a_pod_sees_in_shared_mode() {
    calm();
    make_pod();
    shell("ip link set rail7 netns pod; ip -n pod link set rail7 up");
    let own = ports_in_pod("/sys");
    let hosts = ports_in_pod("/hostsys");
    // The pod's own sysfs: the devices without their counters. RDMA netlink has them all the same.
    let port = find(&own, "mlx5_0");
    assert_eq!(state(port, "hw_counters"), "active");
    assert_eq!(state(port, "port_counters"), "not_applicable ENOENT");
    assert_eq!(port["netdev"], Value::Null, "the netdev is not in the pod");
    // Whose netdev was moved into the pod is whole there.
    let given = find(&own, "mlx5_7");
    for source in ["ethtool", "hw_counters", "link", "settings", "dcb"] {
        assert_eq!(state(given, source), "active", "{source}");
    }
    let counters = find(&own, "mlx5_7");
    assert_eq!(state(counters, "ethtool"), "active");
    // The host's sysfs: all that is a file or RDMA netlink.
    let port = find(&hosts, "mlx5_0");
    for source in ["hw_counters", "port_counters", "link"] {
        assert_eq!(state(port, source), "active", "{source}");
    }
    for source in ["ethtool", "dcb"] {
        assert_eq!(state(port, source), "not_applicable other_netns", "{source}");
    }
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn what_a_pod_sees_in_exclusive_mode() {
    calm();
    shell("rdma system set netns exclusive");
    make_pod();
    shell("rdma dev set mlx5_7 netns pod; ip link set rail7 netns pod; ip -n pod link set rail7 up");
    let own = ports_in_pod("/sys");
    let hosts = ports_in_pod("/hostsys");
    // What was given to the pod is all there, as on a host.
    assert_eq!(own.len(), 1, "{own:?}");
    let port = find(&own, "mlx5_7");
    for source in [
        "ethtool",
        "hw_counters",
        "port_counters",
        "link",
        "settings",
        "dcb",
    ] {
        assert_eq!(state(port, source), "active", "{source}");
    }
    // The host's sysfs has the others, by their files; RDMA netlink does not speak of them here.
    assert_eq!(hosts.len(), NICS - 1);
    let port = find(&hosts, "mlx5_0");
    for source in ["hw_counters", "port_counters", "link"] {
        assert_eq!(state(port, source), "active", "{source}");
    }
    assert_eq!(state(port, "ethtool"), "not_applicable other_netns");
}
