//! What the tests of the whole binary share: a daemon that ends with the test, a scrape, and a reader of expositions.

#![allow(dead_code)] // each test program uses a part
#![allow(unreachable_pub)] // a module of several test programs
#![allow(clippy::disallowed_methods)] // tests start processes, wait and read files

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The binary under test: the one that cargo built, or the one that the guest was given.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("ROCEWATCH_BIN").map_or_else(|| env!("CARGO_BIN_EXE_rocewatch").into(), PathBuf::from)
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    Command::new(binary())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary can be started")
}

/// A configuration in `folder` for a clock that is so many times as fast, on which reading takes as many times longer: the shares of time
/// that it may take by default, as many times.
pub(crate) fn hurried_config(folder: &Path, speed: u32) -> PathBuf {
    let config = folder.join("hurried.toml");
    let (device, rtnl) = (f64::from(speed), f64::from(speed) * 0.2);
    let shares = format!("[sampling]\ndevice_duty_percent = {device:.1}\nrtnl_duty_percent = {rtnl:.1}\n");
    std::fs::write(&config, shares).expect("a file can be written");
    config
}

/// A daemon on a port of its own; it is ended, by its own id, when it goes out of scope.
pub(crate) struct Daemon {
    child: Child,
    address: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Daemon {
    /// Starts `rocewatch COMMAND ARGUMENTS --listen 127.0.0.1:0` and waits until it serves.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// The same with these environment variables.
    pub(crate) fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(binary());
        command.args(arguments).envs(environment.iter().copied());
        Self::start_by(command)
    }

    /// The same by a command that ends in being the daemon; its last arguments are for the daemon.
    pub(crate) fn start_by(mut command: Command) -> Self {
        let mut child = command
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let mut lines = BufReader::new(child.stderr.take().expect("standard error is piped")).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let address = loop {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("the daemon ended early:\n{}", log.lock().unwrap()))
                .expect("the log is text");
            let address = address_in(&line);
            append(&log, &line);
            if let Some(address) = address {
                break address;
            }
        };
        let rest = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                append(&rest, &line);
            }
        });
        Self { child, address, log }
    }

    /// A simulated storm on one of two ports, a minute of it in a second, in an archive below `state`.
    pub(crate) fn storm(state: &Path) -> Self {
        Self::hurried(state, "pfc-storm")
    }

    /// A simulated server of two ports, a minute of it in a second, in an archive below `state`.
    pub(crate) fn hurried(state: &Path, scenario: &str) -> Self {
        let config = hurried_config(state, 60);
        let [state, config] = [state, &config].map(|path| path.to_str().expect("paths are text"));
        let server = ["demo", "--scenario", scenario, "--ports", "2", "--speed", "60"];
        let daemon = Self::start(&[&server[..], &["--state", state, "--config", config]].concat());
        daemon.wait_until_ready();
        daemon
    }

    /// Waits until so many rows are archived.
    pub(crate) fn wait_for_rows(&self, rows: f64) {
        self.wait_for("rows are archived", Duration::from_secs(120), |metrics| {
            metrics
                .get("rocewatch_archive_rows_total", &[])
                .is_some_and(|found| found >= rows)
        });
    }

    /// Where it serves.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until it has logged this. What it writes is read here a moment later, also if its answers already tell of it.
    pub(crate) fn wait_for_log(&self, text: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.log().contains(text) {
            assert!(
                Instant::now() < end,
                "{text:?} is not in the log:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Answers to `GET path`: head and body.
    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> (String, Vec<u8>) {
        get(self.address, path, headers)
    }

    /// The body of `GET path` as text; the answer has to be 200.
    pub(crate) fn text(&self, path: &str) -> String {
        let (head, body) = self.get(path, &[]);
        assert!(
            head.starts_with("HTTP/1.1 200"),
            "GET {path}: {head}\n{}",
            String::from_utf8_lossy(&body)
        );
        String::from_utf8(body).expect("the answer is text")
    }

    /// What `/metrics` shows now.
    pub(crate) fn scrape(&self) -> Metrics {
        Metrics::parse(&self.text("/metrics"))
    }

    /// Waits until `condition` holds of a scrape; panics with `what` after `limit`.
    pub(crate) fn wait_for(
        &self,
        what: &str,
        limit: Duration,
        condition: impl Fn(&Metrics) -> bool,
    ) -> Metrics {
        let end = Instant::now() + limit;
        loop {
            let metrics = self.scrape();
            if condition(&metrics) {
                return metrics;
            }
            assert!(
                Instant::now() < end,
                "not within {limit:?}: {what}\nlog:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until every source has been opened.
    pub(crate) fn wait_until_ready(&self) {
        let end = Instant::now() + Duration::from_secs(20);
        while !self.get("/readyz", &[]).0.starts_with("HTTP/1.1 200") {
            assert!(Instant::now() < end, "not ready within 20 s:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.id().to_string()])
            .status()
            .expect("kill is there");
        assert!(status.success());
    }

    /// Sends SIGTERM and gives the exit status and how long the end took.
    pub(crate) fn terminate(mut self) -> (Option<i32>, Duration) {
        let asked = Instant::now();
        self.signal("TERM");
        let status = self.child.wait().expect("the daemon can be waited for");
        (status.code(), asked.elapsed())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn append(log: &Mutex<String>, line: &str) {
    let mut log = log.lock().unwrap();
    log.push_str(line);
    log.push('\n');
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let rest = line.split_once("serving http")?.1;
    let rest = rest.split_once("://")?.1;
    rest.split_once("/metrics")?.0.parse().ok()
}

/// `GET path` on a connection of its own.
pub(crate) fn get(address: SocketAddr, path: &str, headers: &[&str]) -> (String, Vec<u8>) {
    request(address, &format!("GET {path}"), headers, b"")
}

/// One request, such as `POST /path`, on a connection of its own: head and body of the answer.
pub(crate) fn request(address: SocketAddr, what: &str, headers: &[&str], body: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).expect("the daemon listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a timeout can be set");
    let mut request = format!("{what} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
    if !body.is_empty() {
        request.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
    }
    for header in headers {
        request.push_str(header);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    stream
        .write_all(&[request.as_bytes(), body].concat())
        .expect("the request can be sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the answer can be read");
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("the answer has a head");
    let head = String::from_utf8(answer[..end].to_vec())
        .expect("the head is text")
        .to_lowercase();
    let head = head.replacen("http/1.1", "HTTP/1.1", 1);
    let body = answer[end + 4..].to_vec();
    if head.contains("transfer-encoding: chunked") {
        (head, unchunk(&body))
    } else {
        (head, body)
    }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = rest
            .windows(2)
            .position(|two| two == b"\r\n")
            .expect("a chunk has a size");
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16)
            .expect("a size is hexadecimal");
        rest = &rest[line + 2..];
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}

/// The samples of an exposition, by name and labels.
#[derive(Debug, Clone)]
pub(crate) struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Reads the text format; a sample that stands twice is an error.
    pub(crate) fn parse(text: &str) -> Self {
        let mut samples = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line
                .rsplit_once(' ')
                .unwrap_or_else(|| panic!("not a sample: {line}"));
            let value = value.parse().unwrap_or_else(|_| panic!("not a number: {line}"));
            assert!(
                samples.insert(series.to_owned(), value).is_none(),
                "the series stands twice: {series}"
            );
        }
        Self(samples)
    }

    /// The series of this name that have all these labels.
    pub(crate) fn all<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.iter().filter_map(move |(series, value)| {
            let (found, rest) = series.split_once('{').unwrap_or((series, ""));
            let has = |(label, wanted): &(&str, &str)| {
                rest.split([',', '{', '}'])
                    .any(|pair| pair == format!("{label}=\"{wanted}\""))
            };
            (found == name && labels.iter().all(has)).then_some((series.as_str(), *value))
        })
    }

    /// The value of the one series of this name with these labels, if it is there.
    pub(crate) fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let found: Vec<_> = self.all(name, labels).collect();
        assert!(
            found.len() < 2,
            "more than one series {name}{labels:?}: {found:?}"
        );
        found.first().map(|(_, value)| *value)
    }

    /// The value of the one series of this name with these labels; it has to be there.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.get(name, labels)
            .unwrap_or_else(|| panic!("no series {name}{labels:?}"))
    }

    /// How many series there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Names of all families that have a series, without `_bucket`, `_sum` and `_count` of histograms.
    pub(crate) fn names(&self) -> std::collections::BTreeSet<String> {
        self.0
            .keys()
            .map(|series| series.split('{').next().unwrap_or(series).to_owned())
            .collect()
    }
}
