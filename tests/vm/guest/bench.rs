//! Steering the NICs, and starting a daemon on them.

use super::support::{self, Daemon, Metrics};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Reading is far slower under emulation than on a machine; with the shares of a real node the intervals would be
/// many seconds long and the tests with them.
pub(crate) const EAGER: &str =
    "[sampling]\ndevice_duty_percent = 60.0\nrtnl_duty_percent = 60.0\nsettings = \"2s\"\ndcb = \"2s\"\n";
/// For tests that change the machine and scrape all the while: the guest's two slow processors have to do that as well.
pub(crate) const MODEST: &str = "[sampling]\nrtnl_duty_percent = 5.0\nsettings = \"2s\"\ndcb = \"2s\"\n\
                                 [metrics]\nraw = \"none\"\n";
/// The NICs that a test begins with.
pub(crate) const NICS: usize = 8;
/// The NICs that `fakeroce` can make.
const MOST: usize = 64;

/// The RDMA device of a NIC.
pub(crate) fn device(nic: usize) -> String {
    format!("mlx5_{nic}")
}

pub(crate) fn steer(lines: &str) {
    try_steer(lines).unwrap_or_else(|error| panic!("fakeroce refuses {lines:?}: {error}"));
}

fn try_steer(lines: &str) -> std::io::Result<()> {
    std::fs::write("/proc/fakeroce", lines)
}

/// The guest as it was at its start: every NIC new, up and in the first namespace, all counters at 0.
pub(crate) fn calm() {
    // The last namespace has to be gone before the mode can be shared again, and its end is not waited for.
    shell(
        "[ -e /proc/fakeroce ] || modprobe fakeroce nics=0; ip link del bond7 2>/dev/null; ip -all netns del; \
         for try in $(seq 100); do rdma system set netns shared 2>/dev/null && exit; sleep 0.1; done; exit 1",
    );
    for nic in 0..MOST {
        // Absent where the test before has left it so.
        let _ = try_steer(&format!("unplug {nic}"));
    }
    plug(0..NICS);
}

/// Plugs these NICs in and brings their links up.
pub(crate) fn plug(nics: std::ops::Range<usize>) {
    for nic in nics.clone() {
        steer(&format!("plug {nic}"));
    }
    bring_up(nics);
}

/// Brings the links of these NICs up, and waits until the kernel says that they are: it tells of links that came up once
/// a second at most.
pub(crate) fn bring_up(nics: std::ops::Range<usize>) {
    let lines: Vec<_> = nics
        .clone()
        .map(|nic| format!("addr replace 10.0.{nic}.1/24 dev rail{nic}\nlink set rail{nic} up\n"))
        .collect();
    std::fs::write("/tmp/links", lines.concat()).expect("/tmp is writable");
    shell("ip -batch /tmp/links");
    let end = Instant::now() + Duration::from_secs(10);
    for nic in nics {
        while std::fs::read_to_string(format!("/sys/class/net/rail{nic}/operstate"))
            .expect("it is plugged in")
            != "up\n"
        {
            assert!(Instant::now() < end, "rail{nic} does not come up");
            pause(20);
        }
    }
}

/// Runs a command of the shell and gives what it prints.
pub(crate) fn shell(command: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", command])
        .output()
        .expect("sh is there");
    assert!(
        output.status.success(),
        "{command}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("it prints text")
}

/// The true values of one NIC's counters now, by `section.name`.
pub(crate) fn truth(device: &str) -> BTreeMap<String, f64> {
    let text = std::fs::read_to_string("/proc/fakeroce_values").expect("fakeroce is loaded");
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            (words.next()? == device).then_some(())?;
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        })
        .collect()
}

/// How often the kernel has called each function of a NIC's driver, and for how long it was stalled, since its plug.
pub(crate) fn calls(device: &str) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string("/proc/fakeroce").expect("fakeroce is loaded");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(device)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("no {device}"));
    let words: Vec<_> = line.split(' ').collect();
    words
        .chunks(2)
        .map(|pair| (pair[0].to_owned(), pair[1].parse().expect("it is a number")))
        .collect()
}

/// A daemon that reads as often as it can, ready.
pub(crate) fn daemon() -> Daemon {
    daemon_with(EAGER)
}

/// A daemon with this configuration, ready.
pub(crate) fn daemon_with(config: &str) -> Daemon {
    start(config, &[])
}

/// The same, that keeps its history in a folder.
pub(crate) fn daemon_at(config: &str, state: &Path) -> Daemon {
    start(config, &["--state", state.to_str().expect("it is text")])
}

fn start(config: &str, options: &[&str]) -> Daemon {
    std::fs::write("/tmp/rocewatch.toml", config).expect("/tmp is writable");
    let daemon = Daemon::start(&[&["run", "--config", "/tmp/rocewatch.toml"], options].concat());
    daemon.wait_until_ready();
    daemon
}

/// How many lines of an exposition have this label. What has happened to a NIC is told after it has gone as well.
pub(crate) fn series_with(exposition: &str, label: &str, value: &str) -> usize {
    let pairs = [format!("{{{label}=\"{value}\""), format!(",{label}=\"{value}\"")];
    exposition
        .lines()
        .filter(|line| !line.starts_with("rocewatch_event"))
        .filter(|line| pairs.iter().any(|pair| line.contains(pair.as_str())))
        .count()
}

/// The families that these tests look at.
const FAMILIES: [&str; 9] = [
    "port_info",
    "port_up",
    "port_bytes_total",
    "port_speed_bytes_per_second",
    "cnp_sent_total",
    "cnp_per_marked_packet",
    "pfc_pause_ratio",
    "pfc_enabled",
    "source_errors_total",
];

/// One scrape: the whole exposition, and of it what [`FAMILIES`] names. To make an index of thousands of series takes
/// longer here than to give them out.
pub(crate) fn scrape(address: SocketAddr) -> (String, Metrics) {
    let (head, body) = support::get(address, "/metrics", &[]);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let text = String::from_utf8(body).expect("it is text");
    let ours = |line: &&str| {
        let name = line.split('{').next().unwrap_or(line);
        name.strip_prefix("rocewatch_")
            .is_some_and(|name| FAMILIES.contains(&name))
    };
    let few: Vec<_> = text.lines().filter(ours).collect();
    let metrics = Metrics::parse(&few.join("\n"));
    (text, metrics)
}

/// Waits until an exposition is as wanted; panics with `what` after `limit`.
pub(crate) fn wait_for(
    daemon: &Daemon,
    what: &str,
    limit: Duration,
    condition: impl Fn(&str, &Metrics) -> bool,
) {
    let end = Instant::now() + limit;
    loop {
        let (text, metrics) = scrape(daemon.address());
        if condition(&text, &metrics) {
            return;
        }
        assert!(
            Instant::now() < end,
            "not within {limit:?}: {what}\n{}",
            daemon.log()
        );
        pause(200);
    }
}

/// The netdev that a device's port is shown with.
pub(crate) fn netdev_of(metrics: &Metrics, device: &str) -> Option<String> {
    let labels = [("device", device)];
    let (series, _) = metrics.all("rocewatch_port_info", &labels).next()?;
    let (_, rest) = series.split_once("netdev=\"")?;
    Some(rest.split('"').next()?.to_owned())
}

pub(crate) fn assert_close(what: &str, value: f64, right: f64) {
    assert!(
        (value - right).abs() <= right * 0.01,
        "{what}: {value}, but {right} within 1 % is right"
    );
}

pub(crate) fn sleep(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

/// Waits for milliseconds.
pub(crate) fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}
