//! A real Prometheus beside the daemon.

#![allow(dead_code)] // each test program uses a part
#![allow(unreachable_pub)] // a module of several test programs
#![allow(clippy::disallowed_methods)] // tests start processes and write files

use crate::support::get;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Prometheus on a port and a folder of its own, ended when it goes out of scope.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
    _data: tempfile::TempDir,
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
        let config = data.path().join("prometheus.yml");
        std::fs::write(
            &config,
            format!("global: {{scrape_interval: 1s}}\nscrape_configs:\n{jobs}"),
        )
        .expect("the configuration can be written");
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .expect("a port is free");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                data.path().join("tsdb").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is installed (Debian package prometheus)");
        Self {
            child,
            address,
            _data: data,
        }
    }

    /// The samples of an instant query, as labels and value.
    pub(crate) fn query(&self, query: &str) -> Vec<(serde_json::Value, f64)> {
        let mut encoded = String::new();
        for byte in query.bytes() {
            let _ = write!(encoded, "%{byte:02X}");
        }
        if std::net::TcpStream::connect(self.address).is_err() {
            return Vec::new();
        }
        let (_, body) = get(self.address, &format!("/api/v1/query?query={encoded}"), &[]);
        let Ok(answer) = serde_json::from_slice::<serde_json::Value>(&body) else {
            return Vec::new();
        };
        let samples = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        samples
            .into_iter()
            .map(|sample| {
                (
                    sample["metric"].clone(),
                    sample["value"][1]
                        .as_str()
                        .and_then(|v| v.parse().ok())
                        .unwrap_or(f64::NAN),
                )
            })
            .collect()
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
