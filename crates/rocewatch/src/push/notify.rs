//! Events as JSON for a webhook, and as alerts for an Alertmanager (its API v2).

use super::courier::{Headers, Mail};
use super::spool::Record;
use crate::clock::Clock;
use crate::config;
use crate::event::{EventRecord, rfc3339};
use crate::http::App;
use bytes::Bytes;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const JSON: Headers = &[("content-type", "application/json")];
/// How often an Alertmanager is told what goes on.
const REMINDER: Duration = Duration::from_secs(60);
/// An alert that nobody has renewed for so long is over: the node is gone, or its agent is. Nanoseconds.
const PATIENCE: i64 = 300_000_000_000;

/// Who tells: the node, and what the configuration adds.
#[derive(Clone)]
pub(super) struct Teller {
    pub(super) node: String,
    pub(super) labels: BTreeMap<String, String>,
}

impl Teller {
    pub(super) fn new(node: &str, external: &[config::Label]) -> Self {
        let labels = external
            .iter()
            .map(|label| (label.name.clone(), label.value.clone()))
            .collect();
        Self {
            node: node.to_owned(),
            labels,
        }
    }
}

/// The record of an event that has begun or ended.
pub(super) fn record(event: &EventRecord) -> Record {
    let body = serde_json::to_vec(event).unwrap_or_default();
    Record {
        time: event.ended.unwrap_or(event.began) / 1_000_000,
        units: 1,
        body: body.into(),
    }
}

/// What a webhook gets: the event, and of which node it is.
pub(super) struct Webhook(pub(super) Teller);

#[derive(Serialize)]
struct Notice<'a> {
    node: &'a str,
    /// `opened` or `closed`.
    change: &'static str,
    /// The event in a sentence.
    title: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    event: EventRecord,
}

impl Mail for Webhook {
    fn headers(&self) -> Headers {
        JSON
    }

    fn body(&self, record: &Record) -> Bytes {
        let Ok(event) = serde_json::from_slice::<EventRecord>(&record.body) else {
            return record.body.clone();
        };
        let notice = Notice {
            node: &self.0.node,
            change: if event.ended.is_some() { "closed" } else { "opened" },
            title: title(&self.0.node, &event),
            labels: &self.0.labels,
            event,
        };
        serde_json::to_vec(&notice).unwrap_or_default().into()
    }
}

/// `PFC storm on gpu-7 mlx5_0/1, rx priority 3`.
fn title(node: &str, event: &EventRecord) -> String {
    let place = match event.subject.device {
        Some(_) => format!("{node} {}", event.subject.name()),
        None => node.to_owned(),
    };
    let detail = event.detail();
    let detail = if detail.is_empty() {
        detail
    } else {
        format!(", {detail}")
    };
    format!("{} on {place}{detail}", event.title())
}

/// What an Alertmanager gets.
pub(super) struct Alerts {
    pub(super) teller: Teller,
    pub(super) app: Arc<App>,
    pub(super) clock: Clock,
}

/// `postableAlert` of Alertmanager's API v2.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Alert {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<&'static str, String>,
    starts_at: String,
    ends_at: String,
}

impl Alert {
    fn of(event: &EventRecord, teller: &Teller, now: i64) -> Self {
        let subject = &event.subject;
        let text = |text: &str| Some(text.to_owned());
        let own = [
            ("alertname", Some(alert_name(&event.event))),
            ("event", text(&event.event)),
            ("severity", text(&event.severity)),
            ("instance", text(&teller.node)),
            ("job", text("rocewatch")),
            ("device", subject.device.clone()),
            ("port", subject.port.map(|port| port.to_string())),
            ("netdev", subject.netdev.clone()),
            ("priority", event.priority.map(|priority| priority.to_string())),
            ("direction", event.direction.clone()),
        ];
        let mut labels: BTreeMap<String, String> = own
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        labels.extend(teller.labels.clone());
        let evidence = if event.evidence_at_end.is_empty() {
            &event.evidence
        } else {
            &event.evidence_at_end
        };
        let measured: Vec<_> = evidence
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let mut annotations = BTreeMap::from([
            ("summary", title(&teller.node, event)),
            ("event_id", event.id.clone()),
        ]);
        if !measured.is_empty() {
            annotations.insert("description", measured.join(", "));
        }
        Self {
            labels,
            annotations,
            starts_at: rfc3339::text(event.began),
            ends_at: rfc3339::text(event.ended.unwrap_or(now + PATIENCE)),
        }
    }
}

/// `PfcStorm` of `pfc_storm`: alerts are named in this way.
fn alert_name(kind: &str) -> String {
    kind.split('_')
        .map(|word| {
            let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
            first.to_ascii_uppercase() + rest
        })
        .collect()
}

impl Mail for Alerts {
    fn headers(&self) -> Headers {
        JSON
    }

    fn body(&self, record: &Record) -> Bytes {
        let Ok(event) = serde_json::from_slice::<EventRecord>(&record.body) else {
            return Bytes::from_static(b"[]");
        };
        let alert = Alert::of(&event, &self.teller, self.clock.wall());
        serde_json::to_vec(&[alert]).unwrap_or_default().into()
    }

    fn reminds_every(&self) -> Option<Duration> {
        Some(REMINDER)
    }

    fn reminder(&self) -> Option<Bytes> {
        let open = self.app.agent.world().events().open().to_vec();
        if open.is_empty() {
            return None;
        }
        let now = self.clock.wall();
        let alerts: Vec<_> = open
            .iter()
            .map(|event| Alert::of(event, &self.teller, now))
            .collect();
        Some(serde_json::to_vec(&alerts).ok()?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> EventRecord {
        serde_json::from_value(serde_json::json!({
            "id": "x", "event": "pfc_storm", "severity": "critical",
            "device": "mlx5_0", "port": 1, "priority": 3, "direction": "rx",
            "began": "2026-11-29T03:12:05Z", "evidence": {"pause_ratio": 1.0}
        }))
        .unwrap()
    }

    fn teller() -> Teller {
        let cluster = config::Label {
            name: "cluster".to_owned(),
            value: "alpha".to_owned(),
        };
        Teller::new("gpu-7", &[cluster])
    }

    #[test]
    fn a_webhook_is_told_what_has_happened_where() {
        let notice = |event: &EventRecord| -> serde_json::Value {
            serde_json::from_slice(&Webhook(teller()).body(&record(event))).unwrap()
        };
        let opened = notice(&event());
        assert_eq!(opened["change"], "opened");
        assert_eq!(opened["node"], "gpu-7");
        assert_eq!(opened["labels"]["cluster"], "alpha");
        assert_eq!(opened["event"]["began"], "2026-11-29T03:12:05Z");
        let said = opened["title"].as_str().unwrap();
        assert!(said.ends_with("on gpu-7 mlx5_0/1, rx priority 3"), "{said}");
        let closed = notice(&EventRecord {
            ended: Some(event().began + 1),
            ..event()
        });
        assert_eq!(closed["change"], "closed");
    }

    #[test]
    fn an_alert_lasts_until_it_is_no_longer_renewed_or_has_ended() {
        let now = event().began + 1_000_000_000;
        let alert = Alert::of(&event(), &teller(), now);
        assert_eq!(alert.labels["alertname"], "PfcStorm");
        for (name, value) in [
            ("instance", "gpu-7"),
            ("device", "mlx5_0"),
            ("port", "1"),
            ("priority", "3"),
            ("direction", "rx"),
            ("severity", "critical"),
            ("cluster", "alpha"),
        ] {
            assert_eq!(alert.labels[name], value);
        }
        assert!(!alert.labels.contains_key("netdev"));
        assert_eq!(alert.starts_at, "2026-11-29T03:12:05Z");
        assert_eq!(alert.ends_at, "2026-11-29T03:17:06Z");
        assert_eq!(alert.annotations["description"], "pause_ratio 1");
        let ended = EventRecord {
            ended: Some(now),
            ..event()
        };
        assert_eq!(
            Alert::of(&ended, &teller(), now + 1).ends_at,
            "2026-11-29T03:12:06Z"
        );
    }
}
