//! What the process tells of itself: requests and reloads, by the `prometheus` crate; CPU, memory, descriptors.

use super::counted::{Counted, Shown};
use super::number::Number;
use super::text::{self, Format, Headers};
use crate::agent::{Archivist, News};
use axum::http::StatusCode;
use catalog::FamilyKind;
use linux::{Process, Usage};
use prometheus::IntCounter;
use std::sync::{Arc, PoisonError, RwLock};

/// The agent's own metrics.
pub(crate) struct Own {
    counted: RwLock<Vec<Box<dyn Shown>>>,
    requests: Counted<IntCounter>,
    reloads: Counted<IntCounter>,
    scrapes: IntCounter,
    archivist: Option<Arc<Archivist>>,
    process: Option<Process>,
    of_archive: Vec<Told<News>>,
    of_process: Vec<Told<OfProcess>>,
    /// When the process started, as a Unix time.
    started: f64,
}

/// The path of a request, as it is counted.
#[derive(Clone, Copy)]
pub(crate) struct CountedPath(&'static str);

impl CountedPath {
    pub(crate) const METRICS: Self = Self("/metrics");

    /// The word for this path.
    pub(crate) fn of(path: &str) -> Self {
        Self(PATHS.into_iter().find(|known| *known == path).unwrap_or("other"))
    }
}

/// Paths that are counted by name; all others share one label, so that nobody can make series by asking.
const PATHS: [&str; 13] = [
    "/",
    "/metrics",
    "/healthz",
    "/readyz",
    "/api/v1/status",
    "/api/v1/ports",
    "/api/v1/findings",
    "/api/v1/openapi.json",
    "/api/v1/history",
    "/api/v1/events",
    "/api/v1/incidents",
    "/api/v1/stream",
    "/api/v1/read",
];

impl Own {
    pub(super) fn new(started: f64, archivist: Option<Arc<Archivist>>) -> Self {
        let requests = Counted::new("http_requests");
        let reloads = Counted::new("config_reloads");
        let scrapes = Counted::new("expositions");
        for result in ["success", "failure"] {
            reloads.with(&[result]);
        }
        let own = Self {
            counted: RwLock::default(),
            requests: requests.clone(),
            reloads: reloads.clone(),
            scrapes: scrapes.with(&[]),
            archivist,
            process: Process::own(),
            of_archive: told_of_archive(),
            of_process: told_of_process(),
            started,
        };
        own.show(vec![Box::new(requests), Box::new(reloads), Box::new(scrapes)]);
        own
    }

    /// Shows these as well from now on.
    pub(crate) fn show(&self, families: Vec<Box<dyn Shown>>) {
        let mut counted = self.counted.write().unwrap_or_else(PoisonError::into_inner);
        counted.extend(families);
        counted.sort_by_key(|family| family.name());
    }

    /// Counts an answered request.
    pub(crate) fn count_request(&self, path: CountedPath, status: StatusCode) {
        self.requests.with(&[path.0, status.as_str()]).inc();
    }

    /// Counts a reload of the configuration.
    pub(crate) fn count_reload(&self, success: bool) {
        self.reloads
            .with(&[if success { "success" } else { "failure" }])
            .inc();
    }

    /// All of these, as part of an exposition, in place of what `out` holds.
    pub(super) fn encode(&self, format: Format, out: &mut String) {
        self.scrapes.inc();
        out.clear();
        let counted = self.counted.read().unwrap_or_else(PoisonError::into_inner);
        for family in &*counted {
            family.write(format, out);
        }
        if let Some(archivist) = &self.archivist {
            write_all(&self.of_archive, format, &archivist.news(), out);
        }
        if let Some(usage) = self.process.as_ref().and_then(Process::usage) {
            write_all(&self.of_process, format, &(usage, self.started), out);
        }
    }
}

/// A line about `T`, written but for its value.
struct Told<T> {
    headers: Headers,
    prefix: String,
    value: fn(&T) -> Option<Number>,
}

impl<T> Told<T> {
    fn new(name: &str, kind: FamilyKind, unit: &str, help: &str, value: fn(&T) -> Option<Number>) -> Self {
        let mut prefix = String::new();
        text::prefix(name, text::suffix(kind), [], &mut prefix);
        Self {
            headers: Headers::new(name, kind, unit, help),
            prefix,
            value,
        }
    }

    /// Of the catalogue's family of this name.
    fn of(name: &str, value: fn(&T) -> Option<Number>) -> Self {
        let family = catalog::family(name).expect("the catalogue has what is told");
        let name = format!("{}{name}", text::PREFIX);
        Self::new(&name, family.kind, family.unit, family.help, value)
    }
}

fn write_all<T>(all: &[Told<T>], format: Format, of: &T, out: &mut String) {
    for told in all {
        if let Some(value) = (told.value)(of) {
            out.push_str(told.headers.of_format(format));
            out.push_str(&told.prefix);
            value.write(out);
            out.push('\n');
        }
    }
}

/// How the archive is doing.
fn told_of_archive() -> Vec<Told<News>> {
    vec![
        Told::of("archive_bytes", |news| {
            let status = &news.status;
            let bytes = status.row_bytes + status.record_bytes + status.pin_bytes;
            Some(Number::Float(bytes as f64))
        }),
        Told::of("archive_oldest_seconds", |news| {
            news.oldest
                .map(|nanoseconds| Number::Float(nanoseconds as f64 / 1e9))
        }),
        Told::of("archive_paused", |news| {
            let paused = matches!(news.status.state, archive::State::Paused(_));
            Some(Number::count(paused.into()))
        }),
        Told::of("archive_rows", |news| {
            Some(Number::Float(news.status.rows as f64))
        }),
        Told::of("archive_lost_rows", |news| {
            Some(Number::Float(news.status.lost_rows as f64))
        }),
        Told::of("archive_damages", |news| Some(Number::Float(news.damages as f64))),
        Told::of("archive_write_errors", |news| {
            Some(Number::Float(news.failures as f64))
        }),
    ]
}

/// The process's figures, and when it started as a Unix time.
type OfProcess = (Usage, f64);

/// What every exporter tells of its process; the names and sentences are theirs.
fn told_of_process() -> Vec<Told<OfProcess>> {
    use FamilyKind::{Counter, Gauge};
    vec![
        Told::new(
            "process_cpu_seconds",
            Counter,
            "",
            "Total user and system CPU time spent in seconds.",
            |(usage, _)| u64::try_from(usage.cpu.as_nanos()).ok().map(Number::nanoseconds),
        ),
        Told::new(
            "process_max_fds",
            Gauge,
            "",
            "Maximum number of open file descriptors.",
            |(usage, _)| usage.most_open_files.map(Number::count),
        ),
        Told::new(
            "process_open_fds",
            Gauge,
            "",
            "Number of open file descriptors.",
            |(usage, _)| usage.open_files.map(Number::count),
        ),
        Told::new(
            "process_resident_memory_bytes",
            Gauge,
            "",
            "Resident memory size in bytes.",
            |(usage, _)| Some(Number::count(usage.resident_bytes)),
        ),
        Told::new(
            "process_start_time_seconds",
            Gauge,
            "",
            "Start time of the process since unix epoch in seconds.",
            |(_, started)| Some(Number::Float(*started)),
        ),
        Told::new(
            "process_threads",
            Gauge,
            "",
            "Number of OS threads in the process.",
            |(usage, _)| Some(Number::count(usage.threads)),
        ),
        Told::new(
            "process_virtual_memory_bytes",
            Gauge,
            "",
            "Virtual memory size in bytes.",
            |(usage, _)| Some(Number::count(usage.virtual_bytes)),
        ),
    ]
}
