//! What the process tells of itself: requests, log lines, CPU, memory, descriptors. By the `prometheus` crate.

use super::text::{self, Format};
use crate::agent::{Archivist, News};
use axum::http::StatusCode;
use catalog::FamilyKind;
use prometheus::proto::{MetricFamily, MetricType};
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use std::sync::Arc;

/// The agent's own metrics.
pub(crate) struct Own {
    registry: Registry,
    requests: IntCounterVec,
    reloads: IntCounterVec,
    scrapes: IntCounter,
    archivist: Option<Arc<Archivist>>,
}

/// Paths that are counted by name; all others share one label, so that nobody can make series by asking.
const PATHS: [&str; 6] = [
    "/",
    "/metrics",
    "/healthz",
    "/readyz",
    "/api/v1/status",
    "/api/v1/ports",
];

impl Own {
    pub(super) fn new(archivist: Option<Arc<Archivist>>) -> Self {
        let registry = Registry::new();
        let requests = counters("http_requests");
        let reloads = counters("config_reloads");
        let scrapes = IntCounter::with_opts(options("expositions")).expect("the catalogue's names are valid");
        for collector in [
            Box::new(requests.clone()) as Box<dyn prometheus::core::Collector>,
            Box::new(reloads.clone()),
        ] {
            registry
                .register(collector)
                .expect("each name is registered once");
        }
        registry
            .register(Box::new(scrapes.clone()))
            .expect("each name is registered once");
        let process = prometheus::process_collector::ProcessCollector::for_self();
        registry
            .register(Box::new(process))
            .expect("each name is registered once");
        for result in ["success", "failure"] {
            reloads.with_label_values(&[result]);
        }
        Self {
            registry,
            requests,
            reloads,
            scrapes,
            archivist,
        }
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

    /// Appends all to an exposition.
    pub(super) fn encode(&self, format: Format, out: &mut Vec<u8>) {
        self.scrapes.inc();
        let mut text = String::new();
        for family in self.registry.gather() {
            write_family(format, &family, &mut text);
        }
        if let Some(archivist) = &self.archivist {
            write_archive(format, &archivist.news(), &mut text);
        }
        out.extend_from_slice(text.as_bytes());
    }
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
        out.push_str(&value.to_string());
        out.push('\n');
    }
}

fn options(name: &str) -> Opts {
    let help = catalog::family(name).map_or("", |family| family.help);
    Opts::new(format!("{name}_total"), help)
}

fn counters(name: &str) -> IntCounterVec {
    let labels = catalog::family(name).map_or(&[][..], |family| family.labels);
    IntCounterVec::new(options(name), labels).expect("the catalogue's names and labels are valid")
}

/// Counters and gauges are all there is. The `process_` metrics have the names that every exporter gives them.
fn write_family(format: Format, family: &MetricFamily, out: &mut String) {
    let counter = family.get_field_type() == MetricType::COUNTER;
    let (kind, suffix) = if counter {
        (FamilyKind::Counter, "_total")
    } else {
        (FamilyKind::Gauge, "")
    };
    let prefix = if family.name().starts_with("process_") {
        ""
    } else {
        text::PREFIX
    };
    let name = format!("{prefix}{}", family.name().trim_end_matches("_total"));
    text::header(format, &name, kind, "", family.help(), out);
    for metric in family.get_metric() {
        let labels = metric
            .get_label()
            .iter()
            .map(|label| (label.name(), label.value()));
        text::prefix(&name, suffix, labels, out);
        let value = if counter {
            metric.get_counter().get_value()
        } else {
            metric.get_gauge().get_value()
        };
        out.push_str(&value.to_string());
        out.push('\n');
    }
}
