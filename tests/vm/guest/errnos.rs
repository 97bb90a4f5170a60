//! Every errno that a driver may answer with, from each of its callbacks.

use super::bench::{NICS, calm, device, scrape, sleep, steer, wait_for};
use super::scraper::{SHOWN, Scraper, settled, signature, watch};
use super::support::{Daemon, Metrics};
use std::time::Duration;

/// NIC number I + 1 fails with the I-th; NIC 0 does not fail.
const ERRNOS: [(u32, &str); NICS - 1] = [
    (11, "EAGAIN"),
    (22, "EINVAL"),
    (5, "EIO"),
    (19, "ENODEV"),
    (110, "ETIMEDOUT"),
    (95, "EOPNOTSUPP"),
    (1, "EPERM"),
];
/// The values of a source are left out after 5 s without a row, or three intervals.
const LEFT_OUT: Duration = Duration::from_secs(12);
/// A failure of some seconds is followed by a retry within 8 s, and by its row.
const BACK: Duration = Duration::from_secs(15);

fn fail(knob: &str, works: bool) {
    let lines: Vec<_> = (1..)
        .zip(ERRNOS)
        .map(|(nic, (errno, _))| format!("mlx5_{nic} !{knob} {}", if works { 0 } else { errno }))
        .collect();
    steer(&lines.join(";"));
}

/// A value that only this source gives; `None` if it is not shown.
fn value_of(metrics: &Metrics, source: &str, device: &str) -> Option<f64> {
    let labels = [("device", device)];
    match source {
        "ethtool" => metrics.get(
            "rocewatch_port_bytes_total",
            &[("device", device), ("direction", "rx")],
        ),
        "hw_counters" => metrics.get("rocewatch_cnp_sent_total", &labels),
        "settings" => metrics.get("rocewatch_port_speed_bytes_per_second", &labels),
        "dcb" => metrics.get("rocewatch_pfc_enabled", &[("device", device), ("priority", "3")]),
        "link" => metrics.get("rocewatch_port_up", &labels),
        _ => panic!("no value of {source}"),
    }
}

fn right_value_of(source: &str, nic: usize) -> f64 {
    match source {
        "ethtool" | "hw_counters" => signature(nic) as f64,
        "settings" => 50e9,
        _ => 1.0,
    }
}

/// The settings believe a driver that says `EOPNOTSUPP`, and do not put that question again.
fn is_believed(nic: usize, source: &str) -> bool {
    source == "settings" && ERRNOS[nic - 1].1 == "EOPNOTSUPP"
}

/// True if every failing NIC shows the values of these sources.
fn all_shown(metrics: &Metrics, sources: &[&str]) -> bool {
    (1..NICS).all(|nic| {
        let wanted = |source: &&&str| !is_believed(nic, source);
        sources
            .iter()
            .filter(wanted)
            .all(|source| value_of(metrics, source, &device(nic)) == Some(right_value_of(source, nic)))
    })
}

fn none_shown(metrics: &Metrics, source: &str) -> bool {
    (1..NICS).all(|nic| value_of(metrics, source, &device(nic)).is_none())
}

fn errors(metrics: &Metrics, nic: usize, source: &str, reason: &str) -> f64 {
    let device = device(nic);
    let labels = [
        ("device", device.as_str()),
        ("source", source),
        ("reason", reason),
    ];
    metrics
        .all("rocewatch_source_errors_total", &labels)
        .map(|(_, count)| count)
        .sum()
}

const SOURCES: [&str; 5] = ["ethtool", "hw_counters", "settings", "dcb", "link"];

fn started() -> (Daemon, Scraper) {
    calm();
    let daemon = settled();
    wait_for(&daemon, "all values", SHOWN, |_, metrics| {
        all_shown(metrics, &SOURCES)
    });
    let scraper = watch(&daemon);
    (daemon, scraper)
}

/// Fails the callback on every NIC, and lets it work again.
fn fail_and_recover(
    daemon: &Daemon,
    knob: &str,
    sources: &[&str],
    reason: impl Fn(&'static str) -> &'static str,
) {
    fail(knob, false);
    wait_for(daemon, knob, LEFT_OUT, |_, metrics| {
        sources.iter().all(|source| {
            none_shown(metrics, source)
                && (1..)
                    .zip(ERRNOS)
                    .filter(|(nic, _)| !is_believed(*nic, source))
                    .all(|(nic, (_, errno))| errors(metrics, nic, source, reason(errno)) > 0.0)
        })
    });
    let others: Vec<_> = SOURCES
        .into_iter()
        .filter(|source| !sources.contains(source))
        .collect();
    assert!(
        all_shown(&scrape(daemon.address()).1, &others),
        "{knob} costs its own source alone"
    );
    fail(knob, true);
    wait_for(daemon, knob, BACK, |_, metrics| all_shown(metrics, &SOURCES));
}

#[test]
#[ignore = "runs in the guest: ./x vm"]
fn each_errno_is_a_gap_with_its_name_and_ends() {
    let (daemon, scraper) = started();
    fail_and_recover(&daemon, "fail_sset", &["ethtool"], |errno| errno);
    // RDMA netlink says EINVAL for whatever the driver says.
    fail_and_recover(&daemon, "fail_hw", &["hw_counters"], |_| "EINVAL");
    scraper.finish();
}

/// `begin` stands before every ethtool request: it is where a driver in a reset refuses.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_driver_in_a_reset_refuses_ethtool_by_ioctl_and_netlink() {
    let (daemon, scraper) = started();
    fail_and_recover(&daemon, "fail_begin", &["ethtool", "settings"], |errno| errno);
    scraper.finish();
}

/// The kernel leaves out what a DCB callback refuses, and link modes are one question of several: the value is absent
/// and nothing else suffers.
#[test]
#[ignore = "runs in the guest: ./x vm"]
fn a_question_that_fails_costs_its_own_value_only() {
    let (daemon, scraper) = started();
    for (knob, source) in [("fail_pfc", "dcb"), ("fail_link", "settings")] {
        fail(knob, false);
        wait_for(&daemon, knob, LEFT_OUT, |_, metrics| none_shown(metrics, source));
        sleep(1);
        let others: Vec<_> = SOURCES.into_iter().filter(|other| *other != source).collect();
        assert!(all_shown(&scrape(daemon.address()).1, &others), "{knob}");
        fail(knob, true);
        wait_for(&daemon, knob, BACK, |_, metrics| all_shown(metrics, &SOURCES));
    }
    scraper.finish();
}
