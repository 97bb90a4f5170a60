//! A storm, from the simulated server to the pager.

use crate::alertmanager::{Alertmanager, Notification, Receiver, replaced};
use crate::book::deploy;
use crate::prometheus::Prometheus;
use crate::support::Daemon;
use crate::text;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// `deploy/prometheus/prometheus.yml`, but for the target, Alertmanager's address and an interval that a test can wait for.
fn prometheus(daemon: &Daemon, alertmanager: &Alertmanager) -> Prometheus {
    let folder = deploy()
        .join("prometheus")
        .canonicalize()
        .expect("the folder is there");
    let mut config = text(&folder.join("prometheus.yml"));
    for (what, by) in [
        ("scrape_interval: 15s", "scrape_interval: 1s"),
        ("evaluation_interval: 15s", "evaluation_interval: 1s"),
        ("127.0.0.1:9093", &alertmanager.address().to_string()),
        (
            "rocewatch-*.yml",
            &format!("{}/rocewatch-*.yml", folder.display()),
        ),
        ("  file_sd_configs:\n", "  static_configs:\n"),
        (
            "  - files: ['targets/*.yml']\n",
            &format!(
                "  - targets: ['{}']\n    labels: {{cluster: test}}\n",
                daemon.address()
            ),
        ),
    ] {
        config = replaced(&config, what, by);
    }
    Prometheus::start(
        &config,
        tempfile::tempdir().expect("a temporary folder can be made"),
    )
}

fn names(notification: &Notification) -> BTreeSet<&str> {
    let names = notification
        .alerts()
        .iter()
        .filter_map(|alert| alert["labels"]["alertname"].as_str());
    names.collect()
}

fn is_page(status: &'static str) -> impl Fn(&Notification) -> bool {
    move |notification| notification.path == "/page" && notification.status() == status
}

/// How long after `begin`, for people.
fn after(begin: Instant, end: Instant) -> String {
    format!("{:.2} s", end.duration_since(begin).as_secs_f64())
}

#[test]
#[ignore = "needs Debian's prometheus and prometheus-alertmanager: ./x rules"]
fn a_storm_is_one_page() {
    let receiver = Receiver::start();
    let alertmanager = Alertmanager::start(receiver.address());
    // The peer holds rail 5 from second 10 to second 30 of each minute.
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    // The smallest profile is enough.
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[metrics]\nprofile = \"minimal\"\n").expect("the configuration can be written");
    let daemon = Daemon::start(&[
        "demo",
        "--scenario",
        "pfc-storm",
        "--config",
        config.to_str().expect("paths are text"),
    ]);
    let prometheus = prometheus(&daemon, &alertmanager);

    let storm = [("device", "mlx5_5"), ("direction", "rx")];
    let is_storm =
        |metrics: &crate::support::Metrics| metrics.get("rocewatch_pfc_storm_active", &storm) == Some(1.0);
    let paused = [("device", "mlx5_5"), ("direction", "rx"), ("priority", "3")];
    daemon.wait_for("the pause begins", Duration::from_secs(60), |metrics| {
        metrics.get("rocewatch_pfc_pause_seconds_total", &paused) > Some(0.0)
    });
    let began = Instant::now();
    daemon.wait_for("the agent sees the storm", Duration::from_secs(20), is_storm);
    let seen = Instant::now();
    let query = "ALERTS{alertname=\"RocePfcStorm\",alertstate=\"firing\"}";
    while prometheus.ask("query", query, &[]).is_empty() {
        assert!(
            seen.elapsed() < Duration::from_secs(20),
            "Prometheus does not fire"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let fired = Instant::now();
    let page = receiver.wait_for("the page", Duration::from_secs(20), is_page("firing"));
    daemon.wait_for("the storm is over", Duration::from_secs(60), |metrics| {
        !is_storm(metrics)
    });
    let over = Instant::now();
    let inhibited: BTreeSet<_> = alertmanager.inhibited().into_iter().collect();
    let resolved = receiver.wait_for("the all-clear", Duration::from_secs(30), is_page("resolved"));
    // What was held back and is still there would come now.
    std::thread::sleep(Duration::from_secs(5));

    println!(
        "rules: after the first pause, the agent sees the storm in {}, Prometheus fires in {}, the page comes in {}",
        after(began, seen),
        after(began, fired),
        after(began, page.at)
    );
    println!(
        "rules: after the agent sees the end, the all-clear comes in {}; held back meanwhile: {inhibited:?}",
        after(over, resolved.at)
    );
    assert_eq!(page.alerts().len(), 1, "{:#}", page.body);
    let labels = &page.alerts()[0]["labels"];
    assert_eq!(
        (
            &labels["alertname"],
            &labels["device"],
            &labels["direction"],
            &labels["severity"]
        ),
        (
            &json!("RocePfcStorm"),
            &json!("mlx5_5"),
            &json!("rx"),
            &json!("critical")
        )
    );
    let all = receiver.notifications();
    let told: Vec<_> = all
        .iter()
        .map(|n| (n.path.as_str(), n.status(), names(n)))
        .collect();
    let storm = || BTreeSet::from(["RocePfcStorm"]);
    assert_eq!(
        told,
        [("/page", "firing", storm()), ("/page", "resolved", storm())]
    );
}

/// An alert as Prometheus sends it.
fn alert(name: &str, severity: &str, more: &[(&str, &str)]) -> Value {
    let mut labels = json!({"alertname": name, "severity": severity, "cluster": "test", "job": "rocewatch"});
    for (label, value) in more {
        labels[*label] = json!(value);
    }
    json!({"labels": labels})
}

#[test]
#[ignore = "needs Debian's prometheus-alertmanager: ./x rules"]
fn a_storm_through_the_fabric_pages_for_the_node_that_sends_it() {
    let receiver = Receiver::start();
    let alertmanager = Alertmanager::start(receiver.address());
    // A slow host stops its switch, which stops forty others. Each of them has what follows from it.
    let mut alerts = Vec::new();
    for node in 0..40 {
        let instance = format!("gpu-{node:02}");
        let at = [
            ("instance", instance.as_str()),
            ("device", "mlx5_5"),
            ("port", "1"),
            ("direction", "rx"),
        ];
        alerts.push(alert("RocePfcStorm", "critical", &at));
        alerts.push(alert("RocePauseReceived", "warning", &at));
        alerts.push(alert("RoceTransportErrors", "warning", &at[..3]));
    }
    let sender = [
        ("instance", "gpu-40"),
        ("device", "mlx5_5"),
        ("port", "1"),
        ("direction", "tx"),
    ];
    alerts.push(alert("RocePauseSent", "warning", &sender));
    alertmanager.post(&json!(alerts));
    // The cause is found last.
    std::thread::sleep(Duration::from_millis(500));
    alertmanager.post(&json!([alert("RocePfcStorm", "critical", &sender)]));
    // Something else of the same cluster is told all the same.
    let other = [("instance", "gpu-07"), ("device", "mlx5_2"), ("port", "1")];
    alertmanager.post(&json!([alert("RoceFecDegraded", "warning", &other)]));
    receiver.wait_for("the page", Duration::from_secs(20), is_page("firing"));
    std::thread::sleep(Duration::from_secs(6));
    let all = receiver.notifications();
    let told: BTreeSet<_> = all
        .iter()
        .map(|n| (n.path.as_str(), n.alerts().len(), names(n)))
        .collect();
    assert_eq!(
        told,
        BTreeSet::from([
            ("/page", 1, BTreeSet::from(["RocePfcStorm"])),
            ("/ticket", 1, BTreeSet::from(["RoceFecDegraded"])),
        ]),
        "{all:#?}"
    );
    assert_eq!(alertmanager.inhibited().len(), 121);
}
