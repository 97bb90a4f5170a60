//! What is told of sending.

use super::spool::{Record, Waiting};
use crate::metrics::{Counted, Shown};
use prometheus::{Gauge, IntCounter, IntGauge};

/// The metrics of all receivers.
#[derive(Clone)]
pub(super) struct Families {
    sent: Counted<IntCounter>,
    dropped: Counted<IntCounter>,
    failures: Counted<IntCounter>,
    waiting: Counted<IntGauge>,
    waiting_bytes: Counted<IntGauge>,
    newest: Counted<Gauge>,
}

impl Families {
    pub(super) fn new() -> Self {
        Self {
            sent: Counted::new("push_sent"),
            dropped: Counted::new("push_dropped"),
            failures: Counted::new("push_failures"),
            waiting: Counted::new("push_waiting"),
            waiting_bytes: Counted::new("push_waiting_bytes"),
            newest: Counted::new("push_newest_sent_seconds"),
        }
    }

    pub(super) fn shown(&self) -> Vec<Box<dyn Shown>> {
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
        counters.families.sent.with(&labels);
        counters.families.failures.with(&labels);
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
        self.families.sent.with(&labels).inc_by(record.units);
        self.families.newest.with(&labels).set(record.time as f64 / 1e3);
    }

    pub(super) fn dropped(&self, reason: &str, units: u64) {
        let labels = [self.to, self.receiver.as_str(), reason];
        self.families.dropped.with(&labels).inc_by(units);
    }

    pub(super) fn failed(&self) {
        self.families.failures.with(&self.labels()).inc();
    }

    pub(super) fn waiting(&self, waiting: Waiting) {
        let labels = self.labels();
        let set = |gauge: &Counted<IntGauge>, value: u64| {
            gauge.with(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        set(&self.families.waiting, waiting.units);
        set(&self.families.waiting_bytes, waiting.bytes);
    }

    fn labels(&self) -> [&str; 2] {
        [self.to, &self.receiver]
    }
}
