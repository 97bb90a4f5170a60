//! What is told of sending.

use super::spool::{Record, Waiting};
use crate::metrics;
use prometheus::core::Collector;
use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec};

/// The metrics of all receivers.
#[derive(Clone)]
pub(super) struct Families {
    sent: IntCounterVec,
    dropped: IntCounterVec,
    failures: IntCounterVec,
    waiting: IntGaugeVec,
    waiting_bytes: IntGaugeVec,
    newest: GaugeVec,
}

impl Families {
    pub(super) fn new() -> Self {
        Self {
            sent: metrics::counters("push_sent"),
            dropped: metrics::counters("push_dropped"),
            failures: metrics::counters("push_failures"),
            waiting: metrics::gauges("push_waiting"),
            waiting_bytes: metrics::gauges("push_waiting_bytes"),
            newest: metrics::float_gauges("push_newest_sent_seconds"),
        }
    }

    pub(super) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.sent.clone()),
            Box::new(self.dropped.clone()),
            Box::new(self.failures.clone()),
            Box::new(self.waiting.clone()),
            Box::new(self.waiting_bytes.clone()),
            Box::new(self.newest.clone()),
        ]
    }
}

/// Those of one receiver.
#[derive(Clone)]
pub(super) struct Counters {
    families: Families,
    to: &'static str,
    receiver: String,
}

impl Counters {
    /// Of `receiver`, to which things of the kind `to` are sent. They begin at 0, so that the first is seen to come.
    pub(super) fn new(families: &Families, to: &'static str, receiver: String, waiting: Waiting) -> Self {
        let counters = Self {
            families: families.clone(),
            to,
            receiver,
        };
        let labels = counters.labels();
        counters.families.sent.with_label_values(&labels);
        counters.families.failures.with_label_values(&labels);
        for reason in ["full", "refused", "damaged"] {
            counters.dropped(reason, 0);
        }
        counters.waiting(waiting);
        counters
    }

    /// What the receiver is called in the log.
    pub(super) fn to(&self) -> String {
        format!("{} {}", self.to, self.receiver)
    }

    pub(super) fn sent(&self, record: &Record) {
        let labels = self.labels();
        self.families.sent.with_label_values(&labels).inc_by(record.units);
        self.families
            .newest
            .with_label_values(&labels)
            .set(record.time as f64 / 1e3);
    }

    pub(super) fn dropped(&self, reason: &str, units: u64) {
        let labels = [self.to, self.receiver.as_str(), reason];
        self.families.dropped.with_label_values(&labels).inc_by(units);
    }

    pub(super) fn failed(&self) {
        self.families.failures.with_label_values(&self.labels()).inc();
    }

    pub(super) fn waiting(&self, waiting: Waiting) {
        let labels = self.labels();
        let set = |gauge: &IntGaugeVec, value: u64| {
            gauge
                .with_label_values(&labels)
                .set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        set(&self.families.waiting, waiting.units);
        set(&self.families.waiting_bytes, waiting.bytes);
    }

    fn labels(&self) -> [&str; 2] {
        [self.to, &self.receiver]
    }
}
