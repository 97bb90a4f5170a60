//! A real Prometheus (Debian's package), on a port and with a folder of its own.

#![allow(dead_code)] // each test program uses a part
#![allow(unreachable_pub)] // a module of several test programs
#![allow(clippy::disallowed_methods)] // tests start processes, wait and write files

use crate::support::get;
use serde_json::Value;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running Prometheus, ended by its id when it goes out of scope.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
    data: tempfile::TempDir,
}

impl Prometheus {
    /// Starts it with this configuration, beside which the files of the folder are found.
    pub(crate) fn start(config: &str, data: tempfile::TempDir) -> Self {
        let file = data.path().join("prometheus.yml");
        std::fs::write(&file, config).expect("the configuration can be written");
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .expect("a port is free");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", tsdb(&data).display()))
            .arg("--storage.tsdb.retention.time=10y")
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is installed (Debian package prometheus)");
        let prometheus = Self { child, address, data };
        prometheus.wait_until_ready();
        prometheus
    }

    fn wait_until_ready(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        let ready = || {
            TcpStream::connect(self.address).is_ok()
                && get(self.address, "/-/ready", &[]).0.starts_with("HTTP/1.1 200")
        };
        while !ready() {
            assert!(Instant::now() < end, "prometheus is not ready within 60 s");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The answer of its API to a query, which has to succeed: a list of series.
    ///
    /// `path` is `query` or `query_range`, `arguments` what it takes beside the expression.
    pub(crate) fn ask(&self, path: &str, expr: &str, arguments: &[(&str, String)]) -> Vec<Value> {
        let mut target = format!("/api/v1/{path}?query={}", encoded(expr));
        for (name, value) in arguments {
            let _ = write!(target, "&{name}={}", encoded(value));
        }
        let (head, body) = get(self.address, &target, &[]);
        let answer: Value = serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{expr}: {head}"));
        assert_eq!(answer["status"], "success", "{expr}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }
}

/// Where a Prometheus with this folder keeps its blocks.
pub(crate) fn tsdb(data: &tempfile::TempDir) -> std::path::PathBuf {
    let data: &Path = data.path();
    data.join("tsdb")
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        let _ = write!(encoded, "%{byte:02X}");
    }
    encoded
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
