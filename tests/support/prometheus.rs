//! A real Prometheus (Debian's package), on a port and with a folder of its own.

#![allow(dead_code)] // each test program uses a part
#![allow(unreachable_pub)] // a module of several test programs
#![allow(clippy::disallowed_methods)] // tests start processes, wait and write files

use crate::support::get;
use serde_json::Value;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running Prometheus, ended by its id when it goes out of scope.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
    _data: Option<tempfile::TempDir>,
}

impl Prometheus {
    /// Starts it with this configuration, beside which the files of the folder are found, and waits until it is ready.
    pub(crate) fn start(config: &str, data: tempfile::TempDir) -> Self {
        let address = free_address();
        let prometheus = Self {
            child: spawn(
                config,
                data.path(),
                address,
                &["--storage.tsdb.retention.time=10y"],
            ),
            address,
            _data: Some(data),
        };
        prometheus.wait_until_ready();
        prometheus
    }

    /// One that scrapes this target once a second.
    pub(crate) fn scraping(target: SocketAddr) -> Self {
        Self::with_jobs(&format!(
            "- job_name: rocewatch\n  static_configs: [{{targets: ['{target}']}}]\n"
        ))
    }

    /// With these jobs, each of which scrapes once a second.
    pub(crate) fn with_jobs(jobs: &str) -> Self {
        let data = tempfile::tempdir().expect("a temporary folder can be made");
        let address = free_address();
        let config = format!("global: {{scrape_interval: 1s}}\nscrape_configs:\n{jobs}\n");
        Self {
            child: spawn(&config, data.path(), address, &[]),
            address,
            _data: Some(data),
        }
    }

    /// One that scrapes nothing and takes remote write at this address, with its data in `folder`.
    pub(crate) fn receiving(address: SocketAddr, folder: &Path) -> Self {
        Self {
            child: spawn(
                "scrape_configs: []\n",
                folder,
                address,
                &["--web.enable-remote-write-receiver"],
            ),
            address,
            _data: None,
        }
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

    /// Where it serves.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
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

    /// Every sample of a series in the last minutes: time and value.
    pub(crate) fn range(&self, series: &str) -> Vec<(f64, String)> {
        let results = results(self.address, &format!("{series}[10m]"));
        let samples = results
            .iter()
            .filter_map(|result| result["values"].as_array())
            .flatten();
        samples
            .filter_map(|pair| Some((pair[0].as_f64()?, pair[1].as_str()?.to_owned())))
            .collect()
    }

    /// The samples of an instant query, as labels and value.
    pub(crate) fn query(&self, text: &str) -> Vec<(Value, f64)> {
        query(self.address, text)
    }

    /// Waits until the samples of an instant query are as wanted.
    pub(crate) fn wait_for(
        &self,
        query: &str,
        condition: impl Fn(&[(Value, f64)]) -> bool,
    ) -> Vec<(Value, f64)> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let samples = self.query(query);
            if condition(&samples) {
                return samples;
            }
            assert!(Instant::now() < end, "{query} gives {samples:?}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that nobody has.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .expect("a port is free")
}

/// Where a Prometheus with this folder keeps its blocks.
pub(crate) fn tsdb(data: &tempfile::TempDir) -> PathBuf {
    data.path().join("tsdb")
}

fn spawn(config: &str, folder: &Path, address: SocketAddr, further: &[&str]) -> Child {
    let file = folder.join("prometheus.yml");
    std::fs::write(&file, config).expect("the configuration can be written");
    Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
        .arg(format!("--web.listen-address={address}"))
        .args(further)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus is installed (Debian package prometheus)")
}

/// The samples of an instant query, as labels and value, of whoever speaks Prometheus' API.
pub(crate) fn query(address: SocketAddr, text: &str) -> Vec<(Value, f64)> {
    let value = |sample: &Value| sample["value"][1].as_str().and_then(|v| v.parse().ok());
    results(address, text)
        .into_iter()
        .map(|sample| (sample["metric"].clone(), value(&sample).unwrap_or(f64::NAN)))
        .collect()
}

fn results(address: SocketAddr, text: &str) -> Vec<Value> {
    if TcpStream::connect(address).is_err() {
        return Vec::new();
    }
    let (_, body) = get(address, &format!("/api/v1/query?query={}", encoded(text)), &[]);
    let answer: Option<Value> = serde_json::from_slice(&body).ok();
    let found = answer.and_then(|answer| answer["data"]["result"].as_array().cloned());
    found.unwrap_or_default()
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        let _ = write!(encoded, "%{byte:02X}");
    }
    encoded
}
