//! The whole exposition of the real binary on a fixture, against a file that people review.
//!
//! `./x docs` writes the file anew.

#![allow(clippy::print_stdout, clippy::print_stderr)] // figures and reasons for whoever reads the test's output
#![allow(clippy::disallowed_methods)] // tests start processes and read files

mod support;
#[path = "support/tree.rs"]
mod tree;

use catalog::{FamilyKind, Status};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Daemon, Metrics};

/// What the agent tells of itself differs from run to run: the names are compared, the values are not.
const VARYING: [&str; 10] = [
    "rocewatch_up_since_seconds",
    "rocewatch_source_interval_seconds",
    "rocewatch_source_read_seconds",
    "rocewatch_samples_total",
    "rocewatch_samples_missed_total",
    "rocewatch_ring_rows",
    "rocewatch_http_requests_total",
    "rocewatch_expositions_total",
    "process_",
    "rocewatch_build_info",
];

fn daemon_on_fixture(tree: &tempfile::TempDir) -> Daemon {
    let daemon = Daemon::start(&["run", "--sysfs", tree.path().to_str().expect("paths are text")]);
    daemon.wait_until_ready();
    daemon.wait_for("every source was read", Duration::from_secs(10), |metrics| {
        metrics
            .all("rocewatch_samples_total", &[])
            .all(|(_, samples)| samples >= 1.0)
    });
    daemon.wait_for("the doctor has looked", Duration::from_secs(10), |metrics| {
        metrics.all("rocewatch_doctor_finding", &[]).next().is_some()
    });
    // Rates over a window need rows that span it.
    std::thread::sleep(Duration::from_millis(2500));
    daemon
}

fn masked(exposition: &str) -> String {
    let mut out = String::new();
    for line in exposition.lines() {
        let varies = VARYING.iter().any(|name| line.starts_with(name));
        match line.rsplit_once(' ') {
            Some((series, _)) if varies && !line.starts_with('#') => {
                let series = series.replace(env!("CARGO_PKG_VERSION"), "VERSION");
                out.extend([&series, " …\n"]);
            }
            _ => out.extend([line, "\n"]),
        }
    }
    out
}

#[test]
fn the_exposition_of_the_fixture_is_the_reviewed_one() {
    let tree = tree::lay_out("mlx5");
    let daemon = daemon_on_fixture(&tree);
    let found = masked(&daemon.text("/metrics"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/mlx5/metrics.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).expect("the golden file can be written");
    }
    let right = std::fs::read_to_string(&path).expect("the golden file is there; ./x docs writes it");
    for (number, (found, right)) in found.lines().zip(right.lines()).enumerate() {
        assert_eq!(
            found,
            right,
            "line {} of {}; after a change that is meant: ./x docs",
            number + 1,
            path.display()
        );
    }
    assert_eq!(
        found.lines().count(),
        right.lines().count(),
        "the exposition is longer or shorter than {}",
        path.display()
    );
}

/// What promtool says of names that the contract sets: they name what the driver counts, counters and FEC bits.
const SAID_OF_THE_CONTRACT: [&str; 4] = [
    "rocewatch_ethtool_counter_total metric name should not include type 'counter'",
    "rocewatch_hw_counter_total metric name should not include type 'counter'",
    "rocewatch_port_counter_total metric name should not include type 'counter'",
    "rocewatch_fec_corrected_bits_total use base unit \"bytes\" instead of \"bits\"",
];

#[test]
fn promtool_finds_nothing_but_what_the_contract_sets() {
    if Command::new("promtool")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err()
    {
        assert!(
            std::env::var_os("CI").is_none(),
            "promtool is not installed (Debian package prometheus)"
        );
        eprintln!("left out: promtool is not installed (Debian package prometheus)");
        return;
    }
    let daemon = Daemon::start(&["demo"]);
    daemon.wait_until_ready();
    std::thread::sleep(Duration::from_secs(2));
    let text = daemon.text("/metrics");
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there");
    std::io::Write::write_all(&mut promtool.stdin.take().expect("piped"), text.as_bytes())
        .expect("promtool reads");
    let output = promtool.wait_with_output().expect("promtool ends");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let unexpected: Vec<_> = said
        .lines()
        .filter(|line| !line.is_empty() && !SAID_OF_THE_CONTRACT.contains(line))
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    // promtool ends with 3 for remarks of its linter, and with 1 for a text that it cannot read.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
}

const QP_COUNTERS_OFF: &str = "queue pairs are asked about only where sampling.qp_counters says so";
const NOTHING_SENT: &str = "no receiver of events or metrics is configured";
const NO_WEB_CONFIG: &str = "neither TLS nor passwords were asked for";
const NO_STATE: &str = "without --state there is no archive";

/// Families that the simulated mlx5 server does not show, and why.
const NOT_IN_THE_DEMO: [(&str, &str); 39] = [
    ("doctor_finding", "the simulated server is set up as it should be"),
    ("pfc_xoff_frames", "mlx5 does not count XOFF apart"),
    ("pfc_xon_frames", "mlx5 does not count XON apart"),
    ("pfc_port_frames", "mlx5 has no sum over priorities"),
    ("pfc_pause_upper_bound_ratio", "mlx5 measures the time itself"),
    ("pause_xoff_frames", "mlx5 does not count XOFF apart"),
    ("pause_xon_frames", "mlx5 does not count XON apart"),
    (
        "pause_seconds",
        "exists on mlx5 only with global pause switched on",
    ),
    (
        "pause_transitions",
        "exists on mlx5 only with global pause switched on",
    ),
    ("cnp_received", "mlx5 tells handled from ignored"),
    ("roce_retransmitted_bytes", "mlx5 does not count them"),
    ("roce_active_queue_pairs", "mlx5 does not count them"),
    ("link_received_bits", "not in any released kernel"),
    (
        "hw_counter",
        "by default only what no other family shows: all of mlx5's are shown",
    ),
    ("hw_gauge", "mlx5 has none"),
    ("ethtool_gauge", "mlx5 has none"),
    (
        "port_counter",
        "by default only what no other family shows: all that are read are shown",
    ),
    ("module_voltage_volts", "modules are read only where asked for"),
    ("module_tx_bias_amperes", "modules are read only where asked for"),
    ("optical_power_watts", "modules are read only where asked for"),
    ("rdma_async_events", "libibverbs is used only where asked for"),
    ("qp_counter", QP_COUNTERS_OFF),
    ("qp_gauge", QP_COUNTERS_OFF),
    ("web_config_reloads", NO_WEB_CONFIG),
    ("tls_refused", NO_WEB_CONFIG),
    ("push_sent", NOTHING_SENT),
    ("push_dropped", NOTHING_SENT),
    ("push_failures", NOTHING_SENT),
    ("push_waiting", NOTHING_SENT),
    ("push_waiting_bytes", NOTHING_SENT),
    ("push_newest_sent_seconds", NOTHING_SENT),
    ("archive_bytes", NO_STATE),
    ("archive_oldest_seconds", NO_STATE),
    ("archive_paused", NO_STATE),
    ("archive_rows", NO_STATE),
    ("archive_lost_rows", NO_STATE),
    ("archive_damages", NO_STATE),
    ("archive_write_errors", NO_STATE),
    ("source_errors", "no read has failed"),
];

/// Families that are there and should not be, or the other way round.
fn not_as_justified(names: &BTreeSet<String>) -> Vec<String> {
    let is_wrong = |family: &&catalog::Family| {
        let suffix = match family.kind {
            FamilyKind::Counter => "_total",
            FamilyKind::Gauge => "",
            FamilyKind::Histogram => "_count",
        };
        let shown = names.contains(&format!("rocewatch_{}{suffix}", family.name));
        let justified = NOT_IN_THE_DEMO.iter().any(|(name, _)| *name == family.name);
        shown != (family.status == Status::Live && !justified)
    };
    let wrong = catalog::FAMILIES.iter().filter(is_wrong);
    wrong
        .map(|family| format!("{} ({:?})", family.name, family.status))
        .collect()
}

#[test]
fn every_family_of_the_contract_is_there_or_justified() {
    let daemon = Daemon::start(&["demo", "--speed", "4"]);
    daemon.wait_until_ready();
    // Ratios and events come and go with the congestion.
    let end = Instant::now() + Duration::from_secs(40);
    let mut names = daemon.scrape().names();
    let mut wrong = not_as_justified(&names);
    while !wrong.is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(300));
        names.extend(daemon.scrape().names());
        wrong = not_as_justified(&names);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn openmetrics_and_gzip_are_what_they_claim_to_be() {
    let tree = tree::lay_out("mlx5");
    let daemon = daemon_on_fixture(&tree);
    let (head, body) = daemon.get(
        "/metrics",
        &["Accept: application/openmetrics-text;version=1.0.0"],
    );
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{head}"
    );
    let text = String::from_utf8(body).expect("it is text");
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains("# TYPE rocewatch_cnp_sent counter\n"));
    assert!(text.contains("\nrocewatch_cnp_sent_total{"));
    assert!(text.contains("# UNIT rocewatch_rdma_bytes bytes\n"));

    let (head, packed) = daemon.get("/metrics", &["Accept-Encoding: gzip"]);
    assert!(
        head.contains("content-encoding: gzip") && head.contains("vary: accept, accept-encoding"),
        "{head}"
    );
    let mut plain = String::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_string(&mut plain)
        .expect("it is gzip");
    assert_eq!(Metrics::parse(&plain).names(), daemon.scrape().names());
}

#[test]
fn no_port_has_more_than_three_hundred_series() {
    let daemon = Daemon::start(&["demo"]);
    daemon.wait_until_ready();
    std::thread::sleep(Duration::from_secs(3));
    let metrics = daemon.scrape();
    for rail in 0..8 {
        let device = format!("mlx5_{rail}");
        let series = metrics
            .names()
            .iter()
            .map(|name| metrics.all(name, &[("device", &device)]).count())
            .sum::<usize>();
        assert!((100..=300).contains(&series), "{device} has {series} series");
    }
    assert!(metrics.value("rocewatch_series_left_out", &[]) < 0.5);
}

#[test]
fn counters_shows_what_each_counter_is_and_how_it_grows() {
    let tree = tree::lay_out("mlx5");
    let sysfs = tree.path().to_str().expect("paths are text");
    let says = |arguments: &[&str]| {
        let output = support::run(&[&["counters", "--sysfs", sysfs], arguments].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("it is text")
    };
    let text = says(&["mlx5_1"]);
    let line = text
        .lines()
        .find(|line| line.contains("np_cnp_sent"))
        .expect("the counter is shown");
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words[..4], ["np_cnp_sent", "2029", "0/s", "packets"]);
    assert!(
        line.contains("CNPs that this node sent") && !text.contains("mlx5_0"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&says(&["--json", "ens0np0"])).expect("it is JSON");
    let sent = json
        .as_array()
        .and_then(|list| list.iter().find(|one| one["counter"] == "np_cnp_sent"));
    let sent = sent.expect("the counter is in it");
    assert_eq!(
        (&sent["value"], &sent["signal"]),
        (&1029.into(), &"cnp.tx".into())
    );
    let output = support::run(&["counters", "--sysfs", sysfs, "mlx5_7"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there are mlx5_0, mlx5_1"));
}
