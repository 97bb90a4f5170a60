//! A real Prometheus beside the daemon.

#![allow(dead_code)] // each test program uses a part
#![allow(unreachable_pub)] // a module of several test programs
#![allow(clippy::disallowed_methods)] // tests start processes and write files

use crate::support::get;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Prometheus on a port and a folder of its own, ended when it goes out of scope.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
    _data: Option<tempfile::TempDir>,
}

impl Prometheus {
    pub(crate) fn scraping(target: SocketAddr) -> Self {
        Self::with_jobs(&format!(
            "- job_name: rocewatch\n  static_configs: [{{targets: ['{target}']}}]\n"
        ))
    }

    /// With these jobs, each of which scrapes once a second.
    pub(crate) fn with_jobs(jobs: &str) -> Self {
        let data = tempfile::tempdir().expect("a temporary folder can be made");
        let child = start(data.path(), free_address(), &format!("\n{jobs}"), &[]);
        Self {
            child: child.0,
            address: child.1,
            _data: Some(data),
        }
    }

    /// One that scrapes nothing and takes remote write at this address, with its data in `folder`.
    pub(crate) fn receiving(address: SocketAddr, folder: &Path) -> Self {
        let child = start(folder, address, "", &["--web.enable-remote-write-receiver"]);
        Self {
            child: child.0,
            address: child.1,
            _data: None,
        }
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
    pub(crate) fn query(&self, text: &str) -> Vec<(serde_json::Value, f64)> {
        query(self.address, text)
    }

    pub(crate) fn wait_for(
        &self,
        query: &str,
        condition: impl Fn(&[(serde_json::Value, f64)]) -> bool,
    ) -> Vec<(serde_json::Value, f64)> {
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

fn start(folder: &Path, address: SocketAddr, jobs: &str, further: &[&str]) -> (Child, SocketAddr) {
    let config = folder.join("prometheus.yml");
    let jobs = if jobs.is_empty() { " []" } else { jobs };
    std::fs::write(
        &config,
        format!("global: {{scrape_interval: 1s}}\nscrape_configs:{jobs}\n"),
    )
    .expect("the configuration can be written");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
        .arg(format!("--web.listen-address={address}"))
        .args(further)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus is installed (Debian package prometheus)");
    (child, address)
}

/// The samples of an instant query, as labels and value, of whoever speaks Prometheus' API.
pub(crate) fn query(address: SocketAddr, text: &str) -> Vec<(serde_json::Value, f64)> {
    let value = |sample: &serde_json::Value| sample["value"][1].as_str().and_then(|v| v.parse().ok());
    results(address, text)
        .into_iter()
        .map(|sample| (sample["metric"].clone(), value(&sample).unwrap_or(f64::NAN)))
        .collect()
}

fn results(address: SocketAddr, text: &str) -> Vec<serde_json::Value> {
    let mut encoded = String::new();
    for byte in text.bytes() {
        let _ = write!(encoded, "%{byte:02X}");
    }
    if std::net::TcpStream::connect(address).is_err() {
        return Vec::new();
    }
    let (_, body) = get(address, &format!("/api/v1/query?query={encoded}"), &[]);
    let Ok(answer) = serde_json::from_slice::<serde_json::Value>(&body) else {
        return Vec::new();
    };
    answer["data"]["result"].as_array().cloned().unwrap_or_default()
}
