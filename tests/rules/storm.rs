//! A storm, from the simulated server to the pager.

use crate::alertmanager::{Alertmanager, Notification, Receiver, hurried, replaced, shipped_times};
use crate::book::deploy;
use crate::prometheus::Prometheus;
use crate::support::{Daemon, Metrics, get};
use crate::text;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// No step takes longer.
const LIMIT: Duration = Duration::from_secs(90);

/// `deploy/prometheus/prometheus.yml`, but for the target, Alertmanager's address and an interval that a test can wait for.
fn prometheus(daemon: &Daemon, alertmanager: &Alertmanager) -> Prometheus {
    let folder = deploy()
        .join("prometheus")
        .canonicalize()
        .expect("the folder is there");
    let mut config = text(&folder.join("prometheus.yml"));
    let rules = format!("{}/rocewatch-*.yml", folder.display());
    let targets = format!(
        "  - targets: ['{}']\n    labels: {{cluster: test}}\n",
        daemon.address()
    );
    for (what, by) in [
        ("127.0.0.1:9093", alertmanager.address().to_string().as_str()),
        ("rocewatch-*.yml", &rules),
        ("  file_sd_configs:\n", "  static_configs:\n"),
        ("  - files: ['targets/*.yml']\n", &targets),
    ] {
        config = replaced(&config, what, by);
    }
    let config = hurried(
        &config,
        &[
            ("scrape_interval: 15s", "scrape_interval: 1s"),
            ("evaluation_interval: 15s", "evaluation_interval: 1s"),
        ],
    );
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

/// How long ago this was, for people.
fn after(begin: Instant) -> String {
    format!("{:.2} s", begin.elapsed().as_secs_f64())
}

/// The simulated server whose peer holds rail 5 from second 10 to second 30 of each minute, with the smallest profile.
fn stormy() -> Daemon {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[metrics]\nprofile = \"minimal\"\n").expect("the configuration can be written");
    let config = config.to_str().expect("paths are text");
    Daemon::start(&["demo", "--scenario", "pfc-storm", "--config", config])
}

fn is_storm(metrics: &Metrics) -> bool {
    let rail = [("device", "mlx5_5"), ("direction", "rx")];
    metrics.get("rocewatch_pfc_storm_active", &rail) == Some(1.0)
}

fn is_paused(metrics: &Metrics) -> bool {
    let rail = [("device", "mlx5_5"), ("direction", "rx"), ("priority", "3")];
    metrics.get("rocewatch_pfc_pause_seconds_total", &rail) > Some(0.0)
}

/// What Prometheus answers to `/api/v1/WHAT`.
fn answer(prometheus: &Prometheus, what: &str) -> Value {
    let (_, body) = get(prometheus.address(), &format!("/api/v1/{what}"), &[]);
    let answer: Value = serde_json::from_slice(&body).expect("the answer is JSON");
    answer["data"].clone()
}

/// Asks for the alert itself: there is no series `ALERTS` in the first evaluations of a Prometheus.
fn wait_until_it_fires(prometheus: &Prometheus, name: &str) {
    let end = Instant::now() + LIMIT;
    let fires = || {
        let alerts = answer(prometheus, "alerts")["alerts"].clone();
        let mut alerts = alerts.as_array().into_iter().flatten();
        alerts.any(|alert| alert["labels"]["alertname"] == name && alert["state"] == "firing")
    };
    while !fires() {
        assert!(Instant::now() < end, "{name} does not fire within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `ROCEWATCH_SHIPPED_TIMES=1 cargo test --test rules a_storm_is_one_page -- --ignored --nocapture` measures the delays of what
/// we ship.
#[test]
#[ignore = "needs Debian's prometheus and prometheus-alertmanager: ./x rules"]
fn a_storm_is_one_page() {
    let receiver = Receiver::start();
    let alertmanager = Alertmanager::start(receiver.address());
    let daemon = stormy();
    let prometheus = prometheus(&daemon, &alertmanager);

    daemon.wait_for("the pause begins", LIMIT, is_paused);
    let began = Instant::now();
    daemon.wait_for("the agent sees the storm", LIMIT, is_storm);
    let seen = after(began);
    wait_until_it_fires(&prometheus, "RocePfcStorm");
    let fired = after(began);
    let page = receiver.wait_for("the page", LIMIT, is_page("firing"));
    let paged = after(began);
    println!(
        "rules: after the first pause, the agent sees the storm in {seen}, Prometheus fires in {fired}, the page comes in {paged}"
    );
    assert_eq!(page.alerts().len(), 1, "{:#}", page.body);
    let labels = &page.alerts()[0]["labels"];
    assert_eq!(
        (&labels["device"], &labels["direction"]),
        (&json!("mlx5_5"), &json!("rx"))
    );
    if shipped_times() {
        return;
    }

    daemon.wait_for("the storm is over", LIMIT, |metrics| !is_storm(metrics));
    let over = Instant::now();
    receiver.wait_for("the all-clear", LIMIT, is_page("resolved"));
    println!(
        "rules: after the agent sees the end, the all-clear comes in {}",
        after(over)
    );
    // What was held back and is still there would come now; the next storm comes later.
    std::thread::sleep(Duration::from_secs(3));
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

/// Seven minutes of a healthy server, in which every rule has been evaluated on what it really shows.
#[test]
#[ignore = "needs Debian's prometheus and prometheus-alertmanager: ./x rules"]
fn a_healthy_server_alerts_nobody() {
    let receiver = Receiver::start();
    let alertmanager = Alertmanager::start(receiver.address());
    let daemon = Daemon::start(&["demo", "--scenario", "healthy", "--speed", "10"]);
    let prometheus = prometheus(&daemon, &alertmanager);
    std::thread::sleep(Duration::from_secs(42));
    let pending = answer(&prometheus, "alerts");
    assert_eq!(pending["alerts"], json!([]), "{pending:#}");
    let groups = answer(&prometheus, "rules")["groups"].clone();
    let groups = groups.as_array().into_iter().flatten();
    for rule in groups.filter_map(|group| group["rules"].as_array()).flatten() {
        // A group that is evaluated once a minute may not have had its turn.
        let health = rule["health"].as_str().expect("a rule tells its health");
        assert!(["ok", "unknown"].contains(&health), "{rule:#}");
    }
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
    receiver.wait_for("the page", LIMIT, is_page("firing"));
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
