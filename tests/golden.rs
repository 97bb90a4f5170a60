//! The whole exposition of the real binary on a fixture, against a file that people review.
//!
//! `./x docs` writes the file anew.

#![allow(clippy::disallowed_methods)] // tests start processes and read files

mod support;
#[path = "support/tree.rs"]
mod tree;

use catalog::FamilyKind;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Daemon, Metrics};

/// What the agent tells of itself differs from run to run: the names are compared, the values are not.
const VARYING: [&str; 11] = [
    "rocewatch_up_since_seconds",
    "rocewatch_source_interval_seconds",
    "rocewatch_source_read_seconds",
    "rocewatch_samples_total",
    "rocewatch_samples_missed_total",
    "rocewatch_ring_rows",
    "rocewatch_http_requests_total",
    "rocewatch_expositions_total",
    "rocewatch_sampled_utilization_ratio",
    "process_",
    "rocewatch_build_info",
];

fn daemon_on_fixture(tree: &tempfile::TempDir) -> Daemon {
    let daemon = Daemon::start(&["run", "--sysfs", tree.path().to_str().expect("paths are text")]);
    daemon.wait_until_ready();
    let all_read = |metrics: &Metrics| {
        let mut sources = metrics.all("rocewatch_samples_total", &[]).peekable();
        sources.peek().is_some() && sources.all(|(_, samples)| samples >= 3.0)
    };
    daemon.wait_for("every source was read", Duration::from_secs(10), |metrics| {
        let settings = [("source", "settings")];
        let slow = metrics
            .all("rocewatch_samples_total", &settings)
            .all(|(_, samples)| samples >= 1.0);
        slow && metrics.all("rocewatch_port_speed_bytes_per_second", &[]).count() == 2 || all_read(metrics)
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

#[test]
fn promtool_finds_nothing_to_complain_about() {
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
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// Families that the simulated mlx5 server cannot show, and why.
const NOT_ON_MLX5: [(&str, &str); 0] = [];

#[test]
fn every_family_of_the_contract_is_there_or_justified() {
    let daemon = Daemon::start(&["demo"]);
    daemon.wait_until_ready();
    let names = daemon.wait_for("a window has passed", Duration::from_secs(10), |metrics| {
        metrics.all("rocewatch_port_utilization_ratio", &[]).count() > 0
    });
    std::thread::sleep(Duration::from_secs(2));
    let names: BTreeSet<_> = names.names().into_iter().chain(daemon.scrape().names()).collect();
    let mut missing = Vec::new();
    for family in catalog::FAMILIES {
        let suffix = match family.kind {
            FamilyKind::Counter => "_total",
            FamilyKind::Gauge => "",
            FamilyKind::Histogram => "_count",
        };
        let shown = names.contains(&format!("rocewatch_{}{suffix}", family.name));
        let justified = NOT_ON_MLX5.iter().any(|(name, _)| *name == family.name);
        if shown == justified {
            missing.push(format!(
                "{} (shown: {shown}, listed as not on mlx5: {justified})",
                family.name
            ));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
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
    assert_eq!(metrics.value("rocewatch_series_left_out", &[]), 0.0);
}
