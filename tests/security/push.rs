//! What the daemon sends of its own accord: to a receiver that fails in every way, to a real Alertmanager, and a
//! Prometheus and a `VictoriaMetrics` that take the metrics.

#![allow(clippy::disallowed_methods)] // tests start processes and write files

#[path = "../support/prometheus.rs"]
mod prometheus;
#[path = "../support/receiver.rs"]
mod receiver;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tls.rs"]
mod tls;

use prometheus::{Prometheus, free_address, query};
use receiver::{Received, Receiver};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Daemon, Metrics, get, run};
use tls::Authority;

/// The simulated server with this scenario and configuration, keeping its state in `folder`.
fn demo(folder: &Path, scenario: &str, config: &str) -> Daemon {
    demo_at("1", folder, scenario, config)
}

/// The same, so many times as fast as real time.
fn demo_at(speed: &str, folder: &Path, scenario: &str, config: &str) -> Daemon {
    let file = folder.join("rocewatch.toml");
    tls::replace(&file, config);
    let state = folder.join("state");
    let text = |path: &Path| path.to_str().expect("paths are text").to_owned();
    Daemon::start(&[
        "demo",
        "--ports",
        "2",
        "--speed",
        speed,
        "--scenario",
        scenario,
        "--config",
        &text(&file),
        "--state",
        &text(&state),
    ])
}

fn json(request: &Received) -> serde_json::Value {
    serde_json::from_slice(&request.body).expect("it is JSON")
}

/// The changes that a webhook was told, as event and change, without repetitions.
fn told(requests: &[Received]) -> Vec<(String, String)> {
    let mut told = Vec::new();
    for request in requests {
        let notice = json(request);
        let text = |value: &serde_json::Value| value.as_str().expect("it is text").to_owned();
        let change = (text(&notice["event"]["id"]), text(&notice["change"]));
        if !told.contains(&change) {
            told.push(change);
        }
    }
    told
}

fn pushed(metrics: &Metrics, name: &str, labels: &[(&str, &str)]) -> f64 {
    metrics.value(&format!("rocewatch_push_{name}"), labels)
}

#[test]
fn a_webhook_is_told_every_event_through_failures_and_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let hook = Receiver::start(503);
    let config = format!(
        "[notify]\nwebhook = \"http://{}/hook?x=1\"\nexternal_labels = [\"cluster=alpha\"]\n",
        hook.address()
    );
    let daemon = demo_at("10", folder.path(), "pfc-storm", &config);
    let first = hook.wait_for("an attempt", |requests| requests.len() >= 2);
    assert!(
        first[0].head.starts_with("post /hook?x=1 http/1.1"),
        "{}",
        first[0].head
    );
    let notice = json(&first[0]);
    assert_eq!(notice["labels"]["cluster"], "alpha");
    assert!(notice["event"]["evidence"].is_object(), "{notice}");
    assert!(notice["title"].as_str().unwrap().contains("mlx5_"), "{notice}");
    // Again and again the same one: the order is kept.
    assert_eq!(told(&first).len(), 1, "{:?}", told(&first));
    let webhook = [("to", "webhook")];
    let metrics = daemon.wait_for("something waits", Duration::from_secs(30), |metrics| {
        pushed(metrics, "waiting", &webhook) >= 3.0
    });
    assert!(pushed(&metrics, "failures_total", &webhook) >= 2.0);
    assert!(pushed(&metrics, "sent_total", &webhook) < 0.5);
    assert_eq!(daemon.log().matches("which waits: status 503").count(), 1);
    // SIGKILL, as when memory runs out.
    drop(daemon);

    hook.answer(204);
    let before = hook.received().len();
    let daemon = demo(folder.path(), "healthy", &config);
    let waited = pushed(&daemon.scrape(), "waiting", &webhook);
    let all = hook.wait_for("all that waited", |requests| told(&requests[before..]).len() >= 3);
    let taken = told(&all[before..]);
    assert_eq!(taken[0], told(&first)[0], "what failed first comes first");
    daemon.wait_for("nothing waits", Duration::from_secs(30), |metrics| {
        pushed(metrics, "waiting", &webhook) < 0.5 && pushed(metrics, "sent_total", &webhook) >= waited
    });
    let requests = hook.received();
    let ids: BTreeSet<_> = told(&requests[before..])
        .into_iter()
        .filter(|(_, change)| change == "opened")
        .collect();
    assert!(ids.iter().any(|(id, _)| id.contains("pfc_storm")), "{ids:?}");
}

/// The notices of PFC storms that were taken: event and change.
fn storms(requests: &[Received]) -> Vec<(serde_json::Value, String)> {
    let taken = requests.iter().filter(|request| request.status < 300);
    let notices = taken
        .map(json)
        .filter(|notice| notice["event"]["event"] == "pfc_storm");
    notices
        .map(|mut notice| {
            let change = notice["change"].as_str().expect("it is text").to_owned();
            (notice["event"].take(), change)
        })
        .collect()
}

/// The ends of this event that were told.
fn ends_of(id: &serde_json::Value, requests: &[Received]) -> Vec<serde_json::Value> {
    let ends = storms(requests)
        .into_iter()
        .filter(|(_, change)| change == "closed");
    ends.map(|(event, _)| event)
        .filter(|event| event["id"] == *id)
        .collect()
}

/// A webhook, and a daemon that has told it of a storm that goes on.
fn in_a_storm(folder: &Path) -> (Receiver, String, Daemon, serde_json::Value) {
    let hook = Receiver::start(204);
    let config = format!("[notify]\nwebhook = \"http://{}\"\n", hook.address());
    let daemon = demo_at("4", folder, "pfc-storm", &config);
    let requests = hook.wait_for("a storm", |requests| !storms(requests).is_empty());
    let (event, change) = storms(&requests).remove(0);
    assert_eq!(change, "opened");
    (hook, config, daemon, event["id"].clone())
}

/// Nobody saw this end, which is not before the beginning.
fn was_not_seen(end: &serde_json::Value) {
    assert_eq!(end["end_not_seen"], true, "{end}");
    let time = |name: &str| -> jiff::Timestamp { end[name].as_str().unwrap().parse().unwrap() };
    assert!(time("ended") >= time("began"), "{end}");
}

#[test]
fn a_stopped_daemon_tells_that_nobody_will_see_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (hook, config, daemon, id) = in_a_storm(folder.path());
    assert_eq!(daemon.terminate().0, Some(0));
    // Before it ended.
    let ends = ends_of(&id, &hook.received());
    assert_eq!(ends.len(), 1, "{ends:?}");
    was_not_seen(&ends[0]);
    // The next one has nothing to add.
    let daemon = demo(folder.path(), "healthy", &config);
    daemon.wait_until_ready();
    assert_eq!(daemon.terminate().0, Some(0));
    assert_eq!(ends_of(&id, &hook.received()).len(), 1);
}

#[test]
fn what_was_open_at_a_crash_is_closed_by_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (hook, config, daemon, id) = in_a_storm(folder.path());
    drop(daemon);
    assert!(ends_of(&id, &hook.received()).is_empty());
    let _daemon = demo(folder.path(), "healthy", &config);
    let requests = hook.wait_for("its end", |requests| !ends_of(&id, requests).is_empty());
    let ends = ends_of(&id, &requests);
    assert_eq!(ends.len(), 1);
    was_not_seen(&ends[0]);
}

#[test]
fn a_webhook_that_is_away_at_the_end_is_told_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (hook, config, daemon, id) = in_a_storm(folder.path());
    hook.answer(503);
    assert_eq!(daemon.terminate().0, Some(0), "it does not wait for ever");
    assert!(ends_of(&id, &hook.received()).is_empty());
    hook.answer(204);
    let _daemon = demo(folder.path(), "healthy", &config);
    let requests = hook.wait_for("its end", |requests| !ends_of(&id, requests).is_empty());
    was_not_seen(&ends_of(&id, &requests)[0]);
}

#[test]
fn what_a_receiver_refuses_is_dropped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let hook = Receiver::start(400);
    let config = format!("[notify]\nwebhook = \"http://{}\"\n", hook.address());
    let daemon = demo_at("10", folder.path(), "pfc-storm", &config);
    daemon.wait_for("it is counted", Duration::from_secs(30), |metrics| {
        pushed(
            metrics,
            "dropped_total",
            &[("to", "webhook"), ("reason", "refused")],
        ) >= 1.0
    });
    assert!(
        daemon.log().contains("which is dropped: status 400 as asked"),
        "{}",
        daemon.log()
    );
    let received = hook.received();
    assert_eq!(told(&received).len(), received.len(), "nothing is sent twice");
}

#[test]
fn a_receiver_knows_the_daemon_by_its_password_and_is_known_by_its_certificate() {
    let authority = Authority::new("authority of the receivers");
    let folder = tempfile::tempdir().unwrap();
    let identity = authority.issue(&["127.0.0.1"]);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap(),
        )
        .unwrap();
    let receiver = Receiver::start_with(204, Some(Arc::new(server)));
    tls::replace(&folder.path().join("ca.crt"), &authority.pem());
    tls::replace(
        &folder.path().join("stranger.crt"),
        &Authority::new("somebody else").pem(),
    );
    tls::replace(&folder.path().join("password"), "secret\n");
    tls::replace(&folder.path().join("token"), "t0ken\n");
    let at = folder.path().display();
    let url = format!("https://{}/write", receiver.address());
    let write = |rest: &str| format!("[remote_write]\nurl = \"{url}\"\ninterval = \"1s\"\n{rest}");

    let stranger = demo(
        folder.path(),
        "healthy",
        &write(&format!("ca_file = \"{at}/stranger.crt\"\n")),
    );
    stranger.wait_for("it is not trusted", Duration::from_secs(20), |metrics| {
        pushed(metrics, "failures_total", &[("to", "remote_write")]) >= 1.0
    });
    assert!(stranger.log().contains("UnknownIssuer"), "{}", stranger.log());
    assert!(receiver.received().is_empty());
    drop(stranger);

    let basic = demo(
        folder.path(),
        "healthy",
        &write(&format!(
            "ca_file = \"{at}/ca.crt\"\nusername = \"me\"\npassword_file = \"{at}/password\"\n"
        )),
    );
    let requests = receiver.wait_for("a write", |requests| !requests.is_empty());
    // base64 of me:secret, in small letters as the whole head is.
    assert!(
        requests[0].head.contains("authorization: basic bwu6c2vjcmv0"),
        "{}",
        requests[0].head
    );
    for header in [
        "content-encoding: snappy",
        "content-type: application/x-protobuf",
        "x-prometheus-remote-write-version: 0.1.0",
    ] {
        assert!(requests[0].head.contains(header), "{}", requests[0].head);
    }
    drop(basic);
    let _token = demo(
        folder.path(),
        "healthy",
        &write(&format!(
            "ca_file = \"{at}/ca.crt\"\nbearer_token_file = \"{at}/token\"\n"
        )),
    );
    receiver.wait_for("a write with the token", |requests| {
        requests
            .last()
            .is_some_and(|last| last.head.contains("authorization: bearer t0ken"))
    });
}

#[test]
fn what_cannot_be_sent_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rocewatch.toml");
    tls::replace(
        &file,
        "[notify]\nwebhook = \"https://localhost/\"\nca_file = \"/nowhere/ca.crt\"\n",
    );
    let output = run(&["demo", "--config", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("notify: cannot read ca_file /nowhere/ca.crt"),
        "{text}"
    );
}

/// A program with a folder of its own, ended when it goes out of scope.
struct Service(Child);

impl Service {
    fn start(program: &str, arguments: &[String]) -> Self {
        let child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{program} is not installed: {error}"));
        Self(child)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks until there is an answer that this holds of.
fn until<T>(what: &str, limit: Duration, ask: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn get_json(address: SocketAddr, path: &str) -> Option<serde_json::Value> {
    std::net::TcpStream::connect(address).ok()?;
    let (head, body) = get(address, path, &[]);
    head.starts_with("HTTP/1.1 200")
        .then(|| serde_json::from_slice(&body).ok())?
}

#[test]
#[ignore = "needs Debian's prometheus-alertmanager: ./x test"]
fn alertmanagers_have_the_alerts_until_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let addresses = [free_address(), free_address()];
    let alertmanager = |address: SocketAddr| {
        let data = folder.path().join(format!("alertmanager-{}", address.port()));
        let config = folder.path().join("alertmanager.yml");
        std::fs::write(&config, "route: {receiver: none}\nreceivers: [{name: none}]\n").unwrap();
        Service::start(
            "prometheus-alertmanager",
            &[
                format!("--config.file={}", config.display()),
                format!("--storage.path={}", data.display()),
                format!("--web.listen-address={address}"),
                "--cluster.listen-address=".to_owned(),
            ],
        )
    };
    let _first = alertmanager(addresses[0]);
    // The second comes later, and gets what it missed.
    let daemon = demo(
        folder.path(),
        "pfc-storm",
        &format!(
            "[notify]\nalertmanager = [\"http://{}\", \"http://{}\"]\n",
            addresses[0], addresses[1]
        ),
    );
    let storm = |address: SocketAddr| {
        get_json(address, "/api/v2/alerts").and_then(|alerts| {
            let alerts = alerts.as_array()?.clone();
            alerts
                .into_iter()
                .find(|alert| alert["labels"]["alertname"] == "PfcStorm")
        })
    };
    let limit = Duration::from_secs(60);
    let alert = until("a storm at the first", limit, || storm(addresses[0]));
    assert_eq!(alert["labels"]["severity"], "critical");
    assert_eq!(alert["labels"]["direction"], "rx");
    assert_eq!(alert["labels"]["priority"], "3");
    assert_eq!(alert["status"]["state"], "active");
    let receiver = format!("{}", addresses[1]);
    let behind = [("to", "alertmanager"), ("receiver", receiver.as_str())];
    daemon.wait_for("the second fails", limit, |metrics| {
        pushed(metrics, "failures_total", &behind) >= 1.0
    });
    let _second = alertmanager(addresses[1]);
    let late = until("a storm at the second", limit, || storm(addresses[1]));
    assert_eq!(late["startsAt"], alert["startsAt"]);
    assert_eq!(late["fingerprint"], alert["fingerprint"]);
}

#[test]
#[ignore = "needs Debian's prometheus: ./x test"]
fn prometheus_gets_every_sample_through_an_outage_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let prometheus = || Prometheus::receiving(address, folder.path());
    let config = format!(
        "[remote_write]\nurl = \"http://{address}/api/v1/write\"\ninterval = \"1s\"\nexternal_labels = [\"instance=gpu-7\", \"cluster=alpha\"]\n"
    );
    let running = prometheus();
    let daemon = demo(folder.path(), "incast", &config);
    daemon.wait_until_ready();
    let sent = [("to", "remote_write")];
    let limit = Duration::from_secs(60);
    daemon.wait_for("the first samples", limit, |metrics| {
        pushed(metrics, "sent_total", &sent) > 3_000.0
    });
    drop(running);
    daemon.wait_for("samples wait", limit, |metrics| {
        pushed(metrics, "waiting", &sent) > 3_000.0
    });
    let first_run = daemon.scrape();
    drop(daemon);
    // Prometheus is away while the daemon is started anew.
    let daemon = demo(folder.path(), "incast", &config);
    let left = pushed(&daemon.scrape(), "waiting", &sent);
    daemon.wait_for("further samples wait", limit, |metrics| {
        pushed(metrics, "waiting", &sent) > left + 3_000.0
    });
    let running = prometheus();
    daemon.wait_for("all is sent", limit, |metrics| {
        pushed(metrics, "sent_total", &sent) > left + 3_000.0 && pushed(metrics, "waiting", &sent) < 0.5
    });
    let shown = daemon.scrape();
    for reason in ["refused", "full", "damaged"] {
        let labels = [("to", "remote_write"), ("reason", reason)];
        assert!(pushed(&shown, "dropped_total", &labels) < 0.5, "{reason}");
    }
    // One sample a second of each run; in a run no two are further apart than the interval, give or take.
    let series = "rocewatch_up_since_seconds{job=\"rocewatch\",instance=\"gpu-7\",cluster=\"alpha\"}";
    let samples = running.range(series);
    let runs: BTreeSet<String> = samples.iter().map(|(_, value)| value.clone()).collect();
    assert_eq!(
        runs.len(),
        2,
        "two runs, each since a time of its own: {samples:?}"
    );
    for run in &runs {
        let times: Vec<f64> = samples
            .iter()
            .filter(|(_, value)| value == run)
            .map(|(time, _)| *time)
            .collect();
        assert!(times.len() >= 5, "{times:?}");
        let widest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(widest < 2.5, "a gap of {widest} s: {times:?}");
    }
    // Values are those of a scrape: what was counted before the restart is there as it was shown.
    let counted = "rocewatch_cnp_sent_total{device=\"mlx5_0\"}";
    let largest = |metrics: &Metrics| metrics.value("rocewatch_cnp_sent_total", &[("device", "mlx5_0")]);
    let before = running.query(&format!("max_over_time({counted}[10m])"));
    assert_eq!(before.len(), 1);
    assert!(
        before[0].1 >= 0.9 * largest(&first_run).min(largest(&shown)),
        "{before:?}"
    );
    let own = running.query("count({instance=\"gpu-7\"})");
    let (in_prometheus, in_scrape) = (own[0].1, shown.len() as f64);
    assert!(
        (in_prometheus - in_scrape).abs() < 0.05 * in_scrape,
        "{in_prometheus} {in_scrape}"
    );
}

#[test]
#[ignore = "needs Debian's victoria-metrics: ./x test"]
fn victoria_metrics_has_the_same_values_as_a_scrape() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let _victoria = Service::start(
        "victoria-metrics",
        &[
            format!("-storageDataPath={}", folder.path().join("victoria").display()),
            format!("-httpListenAddr={address}"),
            "-retentionPeriod=1".to_owned(),
        ],
    );
    let config = format!("[remote_write]\nurl = \"http://{address}/api/v1/write\"\ninterval = \"1s\"\n");
    let daemon = demo(folder.path(), "pfc-storm", &config);
    daemon.wait_until_ready();
    let sent = [("to", "remote_write")];
    let shown = daemon.wait_for("samples are sent", Duration::from_secs(60), |metrics| {
        pushed(metrics, "sent_total", &sent) > 5_000.0
    });
    let enabled = until("the samples can be queried", Duration::from_secs(60), || {
        let found = query(address, "rocewatch_pfc_enabled{device=\"mlx5_0\"}");
        (!found.is_empty()).then_some(found)
    });
    assert_eq!(enabled.len(), 8);
    for (labels, value) in enabled {
        let priority = labels["priority"].as_str().unwrap();
        let labels = [("device", "mlx5_0"), ("priority", priority)];
        let scraped = shown.value("rocewatch_pfc_enabled", &labels);
        assert!((scraped - value).abs() < 0.1, "priority {priority}");
    }
    let bounds = query(
        address,
        "count(rocewatch_sampled_pause_ratio_bucket{device=\"mlx5_0\",direction=\"rx\",priority=\"3\"})",
    );
    let scraped = shown
        .all(
            "rocewatch_sampled_pause_ratio_bucket",
            &[("device", "mlx5_0"), ("direction", "rx"), ("priority", "3")],
        )
        .count();
    assert!((bounds[0].1 - scraped as f64).abs() < 0.1, "{bounds:?} {scraped}");
}
