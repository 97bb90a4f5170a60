//! What the process tells of itself: requests and reloads, by the `prometheus` crate; CPU, memory, descriptors.

use super::number::Number;
use super::text::{self, Format, Headers};
use crate::agent::{Archivist, News};
use axum::http::StatusCode;
use catalog::FamilyKind;
use linux::{Process, Usage};
use prometheus::core::Collector;
use prometheus::proto::{LabelPair, Metric, MetricFamily};
use prometheus::{GaugeVec, IntCounter, IntCounterVec, IntGaugeVec, Opts};
use std::sync::{Arc, PoisonError, RwLock};

/// The agent's own metrics.
pub(crate) struct Own {
    counted: RwLock<Vec<Counted>>,
    requests: IntCounterVec,
    reloads: IntCounterVec,
    scrapes: IntCounter,
    archivist: Option<Arc<Archivist>>,
    process: Option<Process>,
    /// When the process started, as a Unix time.
    started: f64,
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
        let requests = counters("http_requests");
        let reloads = counters("config_reloads");
        let scrapes = IntCounter::with_opts(options("expositions")).expect("the catalogue's names are valid");
        for result in ["success", "failure"] {
            reloads.with_label_values(&[result]);
        }
        let own = Self {
            counted: RwLock::default(),
            requests: requests.clone(),
            reloads: reloads.clone(),
            scrapes: scrapes.clone(),
            archivist,
            process: Process::own(),
            started,
        };
        own.show(vec![Box::new(requests), Box::new(reloads), Box::new(scrapes)]);
        own
    }

    /// Shows these as well from now on.
    pub(crate) fn show(&self, collectors: Vec<Box<dyn Collector>>) {
        let mut counted = self.counted.write().unwrap_or_else(PoisonError::into_inner);
        counted.extend(collectors.into_iter().map(Counted::new));
        counted.sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// Counts an answered request.
    pub(crate) fn count_request(&self, path: &str, status: StatusCode) {
        let path = PATHS.into_iter().find(|known| *known == path).unwrap_or("other");
        self.requests.with_label_values(&[path, status.as_str()]).inc();
    }

    /// Counts a reload of the configuration.
    pub(crate) fn count_reload(&self, success: bool) {
        self.reloads
            .with_label_values(&[if success { "success" } else { "failure" }])
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
            write_archive(format, &archivist.news(), out);
        }
        if let Some(usage) = self.process.as_ref().and_then(Process::usage) {
            write_usage(format, usage, self.started, out);
        }
    }
}

/// A family that the `prometheus` crate counts, and what stands before its series. Its own registry and encoder would make
/// that anew for each scrape.
struct Counted {
    collector: Box<dyn Collector>,
    name: String,
    suffix: &'static str,
    headers: Headers,
}

impl Counted {
    fn new(collector: Box<dyn Collector>) -> Self {
        let described = collector.desc();
        let name = described.first().map_or("", |family| &family.fq_name);
        let plain = name.trim_end_matches("_total");
        let family = catalog::family(plain).expect("the catalogue has what is counted");
        Self {
            name: format!("{}{plain}", text::PREFIX),
            suffix: if family.kind == FamilyKind::Counter {
                "_total"
            } else {
                ""
            },
            headers: Headers::of(family),
            collector,
        }
    }

    /// The series in the order of their labels; nothing if there are none yet.
    fn write(&self, format: Format, out: &mut String) {
        let mut families = self.collector.collect();
        let mut all: Vec<Metric> = families.iter_mut().flat_map(MetricFamily::take_metric).collect();
        if all.is_empty() {
            return;
        }
        out.push_str(self.headers.of_format(format));
        all.sort_by(|one, other| values(one).cmp(values(other)));
        for metric in &all {
            let labels = metric.get_label().iter();
            let labels = labels.map(|label| (label.name(), label.value()));
            text::prefix(&self.name, self.suffix, labels, out);
            let value = if self.suffix.is_empty() {
                metric.get_gauge().get_value()
            } else {
                metric.get_counter().get_value()
            };
            Number::Float(value).write(out);
            out.push('\n');
        }
    }
}

fn values(metric: &Metric) -> impl Iterator<Item = &str> {
    metric.get_label().iter().map(LabelPair::value)
}

/// How the archive is doing.
fn write_archive(format: Format, news: &News, out: &mut String) {
    let status = &news.status;
    let bytes = status.row_bytes + status.record_bytes + status.pin_bytes;
    let paused = matches!(status.state, archive::State::Paused(_));
    let oldest = news.oldest.map(|nanoseconds| nanoseconds as f64 / 1e9);
    let values = [
        ("archive_bytes", Some(bytes as f64)),
        ("archive_oldest_seconds", oldest),
        ("archive_paused", Some(f64::from(u8::from(paused)))),
        ("archive_rows", Some(status.rows as f64)),
        ("archive_lost_rows", Some(status.lost_rows as f64)),
        ("archive_damages", Some(news.damages as f64)),
        ("archive_write_errors", Some(news.failures as f64)),
    ];
    for (name, value) in values {
        let (Some(family), Some(value)) = (catalog::family(name), value) else {
            continue;
        };
        let name = format!("{}{name}", text::PREFIX);
        let suffix = if family.kind == FamilyKind::Counter {
            "_total"
        } else {
            ""
        };
        text::header(format, &name, family.kind, family.unit, family.help, out);
        text::prefix(&name, suffix, [], out);
        Number::Float(value).write(out);
        out.push('\n');
    }
}

fn options(name: &str) -> Opts {
    let help = catalog::family(name).map_or("", |family| family.help);
    Opts::new(format!("{name}_total"), help)
}

/// Counters of the family of this name, by its labels.
pub(crate) fn counters(name: &str) -> IntCounterVec {
    let labels = catalog::family(name).map_or(&[][..], |family| family.labels);
    IntCounterVec::new(options(name), labels).expect("the catalogue's names and labels are valid")
}

/// Gauges of the family of this name, in whole numbers, by its labels.
pub(crate) fn gauges(name: &str) -> IntGaugeVec {
    let (options, labels) = gauge_options(name);
    IntGaugeVec::new(options, labels).expect("the catalogue's names and labels are valid")
}

/// The same with fractions.
pub(crate) fn float_gauges(name: &str) -> GaugeVec {
    let (options, labels) = gauge_options(name);
    GaugeVec::new(options, labels).expect("the catalogue's names and labels are valid")
}

fn gauge_options(name: &str) -> (Opts, &'static [&'static str]) {
    let family = catalog::family(name);
    let help = family.map_or("", |family| family.help);
    let labels = family.map_or(&[][..], |family| family.labels);
    (Opts::new(name, help), labels)
}

/// The names and sentences are those that every exporter has.
fn write_usage(format: Format, usage: Usage, started: f64, out: &mut String) {
    use FamilyKind::{Counter, Gauge};
    let count = |value: u64| Some(Number::count(value));
    let families = [
        (
            "process_cpu_seconds",
            Counter,
            "Total user and system CPU time spent in seconds.",
            u64::try_from(usage.cpu.as_nanos()).ok().map(Number::nanoseconds),
        ),
        (
            "process_max_fds",
            Gauge,
            "Maximum number of open file descriptors.",
            usage.most_open_files.and_then(count),
        ),
        (
            "process_open_fds",
            Gauge,
            "Number of open file descriptors.",
            usage.open_files.and_then(count),
        ),
        (
            "process_resident_memory_bytes",
            Gauge,
            "Resident memory size in bytes.",
            count(usage.resident_bytes),
        ),
        (
            "process_start_time_seconds",
            Gauge,
            "Start time of the process since unix epoch in seconds.",
            Some(Number::Float(started)),
        ),
        (
            "process_threads",
            Gauge,
            "Number of OS threads in the process.",
            count(usage.threads),
        ),
        (
            "process_virtual_memory_bytes",
            Gauge,
            "Virtual memory size in bytes.",
            count(usage.virtual_bytes),
        ),
    ];
    for (name, kind, help, value) in families {
        let Some(value) = value else { continue };
        text::header(format, name, kind, "", help, out);
        let suffix = if kind == Counter { "_total" } else { "" };
        text::prefix(name, suffix, std::iter::empty(), out);
        value.write(out);
        out.push('\n');
    }
}
