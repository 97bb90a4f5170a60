//! TLS, client certificates and passwords at the real binary, with clients of every kind, a real Prometheus among them.

#![allow(clippy::disallowed_methods)] // tests start processes and write files

#[path = "../support/prometheus.rs"]
mod prometheus;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tls.rs"]
mod tls;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prometheus::Prometheus;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{Daemon, run};
use tls::{Authority, Client, Identity, replace};

/// A folder with a certificate of the server and a `web.yml`.
struct Folder {
    folder: tempfile::TempDir,
    authority: Authority,
}

impl Folder {
    /// With this in the `web.yml`, behind certificate and key.
    fn with_tls(rest: &str) -> Self {
        let folder = Self::with(&format!(
            "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n{rest}"
        ));
        folder.install(&folder.authority.issue(&["localhost"]));
        folder
    }

    fn with(text: &str) -> Self {
        let this = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            authority: Authority::new("authority of the servers"),
        };
        this.web(text);
        this
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn install(&self, identity: &Identity) {
        identity.write(self.path(), "server");
    }

    /// Puts a new `web.yml` in place.
    fn web(&self, text: &str) -> String {
        let file = self.path().join("web.yml");
        replace(&file, text);
        file.to_str().expect("paths are text").to_owned()
    }

    fn start(&self) -> Daemon {
        let file = self.path().join("web.yml");
        Daemon::start(&[
            "demo",
            "--ports",
            "1",
            "--web-config",
            file.to_str().expect("paths are text"),
        ])
    }

    fn client(&self, identity: Option<&Identity>) -> Client {
        Client::new(&self.authority, identity)
    }

    fn check(&self, text: &str) -> String {
        let output = run(&["check-config", &self.web(text)]);
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        String::from_utf8(output.stderr).expect("messages are text")
    }
}

fn basic(user: &str, password: &str) -> String {
    format!(
        "Authorization: Basic {}",
        STANDARD.encode(format!("{user}:{password}"))
    )
}

/// Cheap, as tests check many.
fn hash(password: &str) -> String {
    bcrypt::hash(password, 4).expect("a password can be hashed")
}

/// Waits until a page holds this. A page is made when the values of the ports change, not for each scrape.
fn shows(series: &str, scrape: impl Fn() -> String) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let page = scrape();
        if page.contains(series) {
            return;
        }
        assert!(Instant::now() < end, "{series} is not in\n{page}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn status(answer: &str) -> u16 {
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.unwrap_or_else(|| panic!("not an answer: {answer}"))
}

#[test]
fn metrics_come_over_tls_and_plain_http_is_told_so() {
    let folder = Folder::with_tls("");
    let daemon = folder.start();
    assert!(daemon.log().contains("serving https://"), "{}", daemon.log());
    for versions in [&[&rustls::version::TLS12][..], &[&rustls::version::TLS13]] {
        let client = Client::with_versions(&folder.authority, None, versions);
        let answer = client.get(daemon.address(), "/metrics", &[]).unwrap();
        assert!(answer.contains("rocewatch_build_info{"), "{answer}");
    }
    let (head, body) = daemon.get("/metrics", &[]);
    assert_eq!(status(&head), 400);
    assert!(
        String::from_utf8(body)
            .unwrap()
            .contains("this port speaks HTTPS")
    );
    let stranger = Client::new(&Authority::new("somebody else"), None);
    let refused = stranger.get(daemon.address(), "/metrics", &[]).unwrap_err();
    assert!(refused.contains("UnknownIssuer"), "{refused}");
    let client = folder.client(None);
    for reason in ["plain_http", "refused_by_client"] {
        let series = format!("rocewatch_tls_refused_total{{reason=\"{reason}\"}} 1\n");
        shows(&series, || client.get(daemon.address(), "/metrics", &[]).unwrap());
    }
}

#[test]
fn versions_are_held_to() {
    let folder = Folder::with_tls("  min_version: TLS13\n");
    let daemon = folder.start();
    let old = Client::with_versions(&folder.authority, None, &[&rustls::version::TLS12]);
    let refused = old.get(daemon.address(), "/healthz", &[]).unwrap_err();
    assert!(refused.contains("ProtocolVersion"), "{refused}");
    assert_eq!(
        status(
            &folder
                .client(None)
                .get(daemon.address(), "/healthz", &[])
                .unwrap()
        ),
        200
    );
}

/// Whether clients without a certificate, with one of a stranger, with one of the authority for another name, and with
/// the right one are let in.
fn let_in(client_auth: &str, rest: &str) -> [bool; 4] {
    let ours = Authority::new("authority of the clients");
    let folder = Folder::with_tls(&format!("  client_auth_type: {client_auth}\n{rest}"));
    replace(&folder.path().join("clients.crt"), &ours.pem());
    let daemon = folder.start();
    let stranger = Authority::new("authority of nobody").issue(&["prometheus"]);
    let other = ours.issue(&["grafana"]);
    let right = ours.issue(&["prometheus"]);
    [None, Some(&stranger), Some(&other), Some(&right)].map(|identity| {
        let answer = folder.client(identity).get(daemon.address(), "/healthz", &[]);
        answer.is_ok_and(|answer| status(&answer) == 200)
    })
}

#[test]
fn client_certificates_are_asked_for_by_the_five_policies() {
    let ca = "  client_ca_file: clients.crt\n";
    let named = format!("{ca}  client_allowed_sans: [prometheus, 10.0.0.1]\n");
    assert_eq!(let_in("NoClientCert", ""), [true, true, true, true]);
    assert_eq!(let_in("RequestClientCert", ""), [true, true, true, true]);
    assert_eq!(let_in("RequireAnyClientCert", ""), [false, true, true, true]);
    assert_eq!(let_in("VerifyClientCertIfGiven", ca), [true, false, true, true]);
    assert_eq!(
        let_in("RequireAndVerifyClientCert", ca),
        [false, false, true, true]
    );
    assert_eq!(
        let_in("RequireAndVerifyClientCert", &named),
        [false, false, false, true]
    );
    assert_eq!(
        let_in("RequireAnyClientCert", "  client_allowed_sans: [prometheus]\n"),
        [false, true, false, true]
    );
}

#[test]
fn an_expired_client_is_turned_away() {
    let ours = Authority::new("authority of the clients");
    let folder =
        Folder::with_tls("  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: clients.crt\n");
    replace(&folder.path().join("clients.crt"), &ours.pem());
    let daemon = folder.start();
    let expired = ours.issue_until(&["prometheus"], 2021);
    let refused = folder
        .client(Some(&expired))
        .get(daemon.address(), "/healthz", &[])
        .unwrap_err();
    assert!(refused.contains("CertificateExpired"), "{refused}");
}

#[test]
fn a_renewed_certificate_is_taken_up_without_a_restart_and_a_broken_one_is_not() {
    let folder = Folder::with_tls("");
    folder.install(&folder.authority.issue_until(&["localhost"], 2021));
    let daemon = folder.start();
    let client = folder.client(None);
    let scrape = || client.get(daemon.address(), "/metrics", &[]);
    assert!(
        daemon.log().contains("has expired"),
        "it is said:\n{}",
        daemon.log()
    );
    let refused = scrape().unwrap_err();
    assert!(refused.contains("expired"), "{refused}");

    folder.install(&folder.authority.issue(&["localhost"]));
    assert!(scrape().unwrap().contains("rocewatch_build_info{"));

    // A key that does not fit, as between the two steps of a renewal.
    let next = folder.authority.issue(&["localhost"]);
    replace(&folder.path().join("server.crt"), &next.certificate);
    shows(
        "rocewatch_web_config_reloads_total{result=\"failure\"} 1\n",
        || scrape().unwrap(),
    );
    let log = daemon.log();
    assert!(
        log.contains("was not taken up, the former one holds") && log.contains("the key has to be the one"),
        "{log}"
    );
    replace(&folder.path().join("server.key"), &next.key);
    shows("rocewatch_web_config_reloads_total{result=\"success\"}", || {
        scrape().unwrap()
    });
    // It is said once, not for each scrape.
    assert_eq!(daemon.log().matches("was not taken up").count(), 1);
}

#[test]
fn only_users_with_their_passwords_get_an_answer() {
    let folder = Folder::with(&format!("basic_auth_users:\n  alice: {}\n", hash("secret")));
    let daemon = folder.start();
    assert!(daemon.log().contains("serving http://"), "{}", daemon.log());
    let ask = |path: &str, headers: &[&str]| daemon.get(path, headers).0;
    let right = basic("alice", "secret");
    for path in [
        "/metrics",
        "/healthz",
        "/readyz",
        "/",
        "/api/v1/status",
        "/nowhere",
    ] {
        let head = ask(path, &[]);
        assert_eq!(status(&head), 401, "{path}");
        assert!(head.contains("www-authenticate: basic"), "{head}");
        assert_ne!(status(&ask(path, &[&right])), 401, "{path}");
    }
    for wrong in [
        basic("alice", "Secret"),
        basic("bob", "secret"),
        "Authorization: Bearer secret".to_owned(),
    ] {
        assert_eq!(status(&ask("/metrics", &[&wrong])), 401, "{wrong}");
    }
    shows(
        "rocewatch_http_requests_total{path=\"/metrics\",status=\"401\"} 4\n",
        || String::from_utf8(daemon.get("/metrics", &[&right]).1).unwrap(),
    );

    folder.web(&format!("basic_auth_users:\n  alice: {}\n", hash("changed")));
    assert_eq!(
        status(&ask("/metrics", &[&right])),
        401,
        "a changed password holds at once"
    );
    assert_eq!(status(&ask("/metrics", &[&basic("alice", "changed")])), 200);
}

#[test]
fn a_file_that_protects_less_needs_a_restart() {
    let folder = Folder::with_tls(&format!("basic_auth_users:\n  alice: {}\n", hash("secret")));
    let daemon = folder.start();
    let client = folder.client(None);
    // As a file looks for a moment that an editor writes in place.
    for text in [
        "",
        "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n",
    ] {
        folder.web(text);
        let answer = client.get(daemon.address(), "/metrics", &[]).unwrap();
        assert_eq!(status(&answer), 401, "{text:?}");
    }
    assert!(
        daemon
            .log()
            .contains("no tls_server_config any more; if that is meant, restart"),
        "{}",
        daemon.log()
    );
}

#[test]
fn a_slow_password_holds_up_nobody_else_and_is_checked_once() {
    // A second and more in a debug build.
    let dear = bcrypt::hash("secret", 10).unwrap();
    let folder = Folder::with(&format!("basic_auth_users:\n  alice: {dear}\n"));
    let daemon = folder.start();
    let right = basic("alice", "secret");
    assert_eq!(status(&daemon.get("/healthz", &[&right]).0), 200);
    // Eight that are wrong wait for each other; who is known waits for none of them.
    let address = daemon.address();
    let wrong: Vec<_> = (0..8)
        .map(|number| {
            let header = basic("alice", &format!("guess {number}"));
            std::thread::spawn(move || status(&support::get(address, "/healthz", &[&header]).0))
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(status(&daemon.get("/healthz", &[&right]).0), 200);
    }
    let unfinished = wrong.iter().filter(|asked| !asked.is_finished()).count();
    assert!(
        unfinished > 0,
        "twenty known requests took as long as eight unknown"
    );
    for asked in wrong {
        assert!(matches!(asked.join().unwrap(), 401 | 503));
    }
}

#[test]
fn headers_and_rate_limit_are_as_asked() {
    let folder = Folder::with(
        "http_server_config:\n  headers: {X-Content-Type-Options: nosniff}\nrate_limit: {interval: 1h, burst: 3}\n",
    );
    let daemon = folder.start();
    let answers: Vec<_> = (0..4).map(|_| daemon.get("/healthz", &[]).0).collect();
    assert!(
        answers[0].contains("x-content-type-options: nosniff"),
        "{}",
        answers[0]
    );
    let codes: Vec<_> = answers.iter().map(|head| status(head)).collect();
    assert_eq!(codes, [200, 200, 200, 429]);
}

#[test]
fn check_config_names_every_mistake_with_its_line() {
    let folder = Folder::with_tls("");
    let good = folder.web("tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n");
    let output = run(&["check-config", &good]);
    assert!(output.status.success(), "{output:?}");
    let text = folder.check("tls_server_config:\n  cert_file: server.crt\n  keyfile: server.key\n");
    assert!(
        text.contains("line 3: unknown key `keyfile`; did you mean `key_file`?"),
        "{text}"
    );
    let text = folder.check("tls_server_config:\n  cert_file: nowhere.crt\n  key_file: server.key\n");
    assert!(
        text.contains("line 2: cert_file: cannot read") && text.contains("nowhere.crt"),
        "{text}"
    );
    let text = folder.check("tls_server_config:\n  cert_file: web.yml\n  key_file: server.key\n");
    assert!(text.contains("there is no certificate in it"), "{text}");
    let text = folder.check("basic_auth_users:\n  alice: secret\n");
    assert!(
        text.contains("line 2: user `alice`") && text.contains("htpasswd"),
        "{text}"
    );

    // By way of the configuration that names it.
    let config = folder.path().join("rocewatch.toml");
    let web = folder.path().join("web.yml");
    replace(&config, &format!("[http]\nweb_config = {web:?}\n"));
    let output = run(&["check-config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(64));
    let output = run(&["run", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8(output.stderr).unwrap().contains("user `alice`"));
}

#[test]
#[ignore = "needs Debian's prometheus: ./x test"]
fn prometheus_scrapes_over_tls_with_certificate_and_password() {
    let ours = Authority::new("authority of the clients");
    let folder = Folder::with_tls(&format!(
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: clients.crt\n  client_allowed_sans: [prometheus]\n\
         basic_auth_users:\n  prometheus: {}\n",
        bcrypt::hash("secret", 10).unwrap()
    ));
    replace(&folder.path().join("clients.crt"), &ours.pem());
    replace(&folder.path().join("authority.crt"), &folder.authority.pem());
    ours.issue(&["prometheus"]).write(folder.path(), "prometheus");
    folder.install(&folder.authority.issue_until(&["localhost"], 2021));
    let daemon = folder.start();
    let job = |name: &str, tls: &str, password: &str, scheme: &str| {
        let target = daemon.address();
        let at = folder.path().display();
        let (tls, auth) = if scheme == "http" {
            (String::new(), String::new())
        } else {
            (
                format!("  tls_config: {{ca_file: {at}/authority.crt, server_name: localhost{tls}}}\n"),
                format!("  basic_auth: {{username: prometheus, password: {password}}}\n"),
            )
        };
        format!(
            "- job_name: {name}\n  scheme: {scheme}\n{tls}{auth}  static_configs: [{{targets: ['{target}']}}]\n"
        )
    };
    let certificate = format!(
        ", cert_file: {at}/prometheus.crt, key_file: {at}/prometheus.key",
        at = folder.path().display()
    );
    let prometheus = Prometheus::with_jobs(
        &[
            job("right", &certificate, "secret", "https"),
            job("wrong_password", &certificate, "guess", "https"),
            job("no_certificate", "", "secret", "https"),
            job("plain", "", "", "http"),
        ]
        .concat(),
    );
    // The certificate has expired, so that nobody connects; it is renewed, and whoever may is in.
    prometheus.wait_for("up", |samples| {
        samples.len() == 4 && samples.iter().all(|(_, up)| *up < 0.5)
    });
    folder.install(&folder.authority.issue(&["localhost"]));
    prometheus.wait_for("up{job=\"right\"}", |samples| {
        samples.iter().any(|(_, up)| *up > 0.5)
    });
    let page = prometheus.wait_for("rocewatch_tls_refused_total", |samples| samples.len() >= 3);
    let reasons: Vec<_> = page
        .iter()
        .filter_map(|(labels, _)| labels["reason"].as_str())
        .collect();
    for reason in ["refused_by_client", "no_client_certificate", "plain_http"] {
        assert!(reasons.contains(&reason), "{reasons:?}");
    }
    for (labels, up) in prometheus.query("up") {
        assert_eq!(up > 0.5, labels["job"] == "right", "{labels}");
    }
    let refused = "rocewatch_http_requests_total{path=\"/metrics\",status=\"401\"}";
    prometheus.wait_for(refused, |samples| samples.iter().any(|(_, count)| *count > 0.5));
}
