//! A real Alertmanager (Debian's package) with the configuration that we ship, and the one who is called.

use crate::book::deploy;
use crate::support::get;
use crate::text;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Replaces a text that has to be there.
pub(crate) fn replaced(text: &str, what: &str, by: &str) -> String {
    assert!(text.contains(what), "{what} is not there any more");
    text.replace(what, by)
}

/// True if the times that we ship are to be kept, so that their delays are measured: `ROCEWATCH_SHIPPED_TIMES=1 ./x rules`.
pub(crate) fn shipped_times() -> bool {
    std::env::var_os("ROCEWATCH_SHIPPED_TIMES").is_some()
}

/// A configuration with times that a test can wait for.
pub(crate) fn hurried(config: &str, times: &[(&str, &str)]) -> String {
    let times = if shipped_times() { &[] } else { times };
    times.iter().fold(config.to_owned(), |config, (what, by)| {
        replaced(&config, what, by)
    })
}

/// A running Alertmanager, ended by its id when it goes out of scope.
pub(crate) struct Alertmanager {
    child: Child,
    address: SocketAddr,
    _data: tempfile::TempDir,
}

impl Alertmanager {
    /// Starts it with the configuration of `deploy/`, but for the receiver's address and times that a test can wait for.
    pub(crate) fn start(receiver: SocketAddr) -> Self {
        let config = text(&deploy().join("alertmanager/alertmanager.yml"));
        let config = replaced(&config, "127.0.0.1:9095", &receiver.to_string());
        let config = hurried(
            &config,
            &[
                ("group_wait: 20s", "group_wait: 2s"),
                ("group_wait: 1m", "group_wait: 3s"),
                ("group_interval: 1m", "group_interval: 2s"),
                ("group_interval: 5m", "group_interval: 3s"),
            ],
        );
        let data = tempfile::tempdir().expect("a temporary folder can be made");
        let file = data.path().join("alertmanager.yml");
        std::fs::write(&file, config).expect("the configuration can be written");
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .expect("a port is free");
        let child = Command::new("prometheus-alertmanager")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.path={}", data.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--cluster.listen-address=")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("alertmanager is installed (Debian package prometheus-alertmanager)");
        let alertmanager = Self {
            child,
            address,
            _data: data,
        };
        alertmanager.wait_until_ready();
        alertmanager
    }

    fn wait_until_ready(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(self.address).is_err()
            || !get(self.address, "/-/ready", &[]).0.starts_with("HTTP/1.1 200")
        {
            assert!(Instant::now() < end, "alertmanager is not ready within 60 s");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Where it serves.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Names of the alerts that it holds back because another explains them.
    pub(crate) fn inhibited(&self) -> Vec<String> {
        let (_, body) = get(
            self.address,
            "/api/v2/alerts?active=false&inhibited=true&silenced=false",
            &[],
        );
        let alerts: Vec<Value> = serde_json::from_slice(&body).expect("the answer is JSON");
        let name = |alert: &Value| alert["labels"]["alertname"].as_str().map(str::to_owned);
        alerts.iter().filter_map(name).collect()
    }

    /// Tells it of alerts, as Prometheus does.
    pub(crate) fn post(&self, alerts: &Value) {
        let body = alerts.to_string();
        let mut stream = TcpStream::connect(self.address).expect("alertmanager listens");
        write!(
            stream,
            "POST /api/v2/alerts HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("the request can be sent");
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .expect("the answer can be read");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A notification as a webhook receives it.
#[derive(Clone, Debug)]
pub(crate) struct Notification {
    /// `/page` or `/ticket`.
    pub(crate) path: String,
    pub(crate) body: Value,
}

impl Notification {
    /// `firing` or `resolved`.
    pub(crate) fn status(&self) -> &str {
        self.body["status"].as_str().unwrap_or_default()
    }

    /// The alerts that it is about.
    pub(crate) fn alerts(&self) -> &[Value] {
        self.body["alerts"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// The receiver of all notifications.
pub(crate) struct Receiver {
    address: SocketAddr,
    notifications: Arc<Mutex<Vec<Notification>>>,
}

impl Receiver {
    /// Listens from now on, as long as the test runs.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let notifications = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&notifications);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = Arc::clone(&taken);
                std::thread::spawn(move || take(stream, &taken));
            }
        });
        Self {
            address,
            notifications,
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has come so far.
    pub(crate) fn notifications(&self) -> Vec<Notification> {
        self.notifications.lock().expect("no receiver panics").clone()
    }

    /// Waits for a notification of which this is true.
    pub(crate) fn wait_for(
        &self,
        what: &str,
        limit: Duration,
        is: impl Fn(&Notification) -> bool,
    ) -> Notification {
        let end = Instant::now() + limit;
        loop {
            let come = self.notifications();
            if let Some(found) = come.iter().find(|notification| is(notification)) {
                return found.clone();
            }
            assert!(
                Instant::now() < end,
                "not within {limit:?}: {what}; what came: {come:#?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Takes the requests of one connection, and thanks for each.
fn take(mut stream: TcpStream, notifications: &Mutex<Vec<Notification>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket can be shared"));
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => {}
            }
            if let Some(rest) = line.strip_prefix("POST ") {
                rest.split(' ').next().unwrap_or_default().clone_into(&mut path);
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a length is a number");
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        notifications
            .lock()
            .expect("no receiver panics")
            .push(Notification {
                path,
                body: serde_json::from_slice(&body).expect("a notification is JSON"),
            });
        if stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .is_err()
        {
            return;
        }
    }
}
