//! An event as it is told: to the archive, the API, the stream and whoever is notified. All have the same shape.

use serde::{Deserialize, Serialize};
use signals::detect::{Event, info};
use std::collections::BTreeMap;

/// Of what an event is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// The port's identity, whatever it is called: PCI address and number. Absent if the event is the node's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) netdev: Option<String>,
}

impl Subject {
    /// A port.
    pub(crate) fn of(port: &model::Port) -> Self {
        Self {
            port_id: Some(port.id.to_string()),
            device: Some(port.device.clone()),
            port: Some(port.id.number),
            netdev: port.netdev.clone(),
        }
    }

    /// What people call it.
    pub(crate) fn name(&self) -> String {
        match (&self.device, self.port) {
            (Some(device), Some(port)) => format!("{device}/{port}"),
            _ => "node".to_owned(),
        }
    }
}

/// An event: something that has begun, and perhaps ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EventRecord {
    /// What it is known by; stays the same when it ends.
    pub(crate) id: String,
    /// The kind, as `docs/events.md` names it.
    pub(crate) event: String,
    pub(crate) severity: String,
    #[serde(flatten)]
    pub(crate) subject: Subject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<u8>,
    /// `rx` or `tx` as seen from this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) direction: Option<String>,
    /// The first sample that showed it.
    #[serde(with = "rfc3339")]
    pub(crate) began: i64,
    /// The first sample that no longer did; absent while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339::optional")]
    pub(crate) ended: Option<i64>,
    /// The agent ended before the event did; `ended` is when it was last seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) end_not_seen: bool,
    /// What was measured when it opened, by name, in base units.
    pub(crate) evidence: BTreeMap<String, f64>,
    /// What was measured when it closed; `peak` is the worst that was seen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) evidence_at_end: BTreeMap<String, f64>,
    /// The incident that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) incident: Option<String>,
}

impl EventRecord {
    /// What has just opened. `wall` turns the times of rows into nanoseconds since 1970.
    pub(crate) fn opened(subject: Subject, event: &Event, wall: impl Fn(u64) -> i64) -> Self {
        let began = wall(event.began);
        let direction = event.direction.map(|direction| direction.as_str().to_owned());
        let mut record = Self {
            id: String::new(),
            event: event.kind.as_str().to_owned(),
            severity: event.severity.as_str().to_owned(),
            subject,
            priority: event.priority,
            direction,
            began,
            ended: event.ended.map(wall),
            end_not_seen: false,
            evidence: evidence(event),
            evidence_at_end: BTreeMap::new(),
            incident: None,
        };
        record.id = record.make_id();
        record
    }

    /// The same event, ended.
    pub(crate) fn closed(&self, event: &Event, wall: impl Fn(u64) -> i64) -> Self {
        Self {
            ended: event.ended.map(wall).map(|ended| ended.max(self.began)),
            evidence_at_end: evidence(event),
            ..self.clone()
        }
    }

    /// The same event, whose end nobody saw: it was last seen `seen`, in nanoseconds since 1970.
    pub(crate) fn unseen_end(self, seen: i64) -> Self {
        Self {
            ended: Some(seen.max(self.began)),
            end_not_seen: true,
            ..self
        }
    }

    /// What the kind is called in a sentence.
    pub(crate) fn title(&self) -> &str {
        signals::detect::EventKind::from_name(&self.event).map_or(&self.event, |kind| info(kind).title)
    }

    /// `rx priority 3`, as far as the event has them.
    pub(crate) fn detail(&self) -> String {
        let priority = self.priority.map(|priority| format!("priority {priority}"));
        [self.direction.clone(), priority]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// True if `other` is the same event, whenever it began.
    pub(crate) fn is_about(&self, event: &Event, subject: &Subject) -> bool {
        self.event == event.kind.as_str()
            && self.subject.port_id == subject.port_id
            && self.priority == event.priority
            && self.direction.as_deref() == event.direction.map(catalog::Direction::as_str)
    }

    /// Two events of one kind on one port, priority and direction never overlap, so that their begin tells them apart.
    fn make_id(&self) -> String {
        let time = jiff::Timestamp::from_nanosecond(self.began.into()).unwrap_or_default();
        let device = self.subject.device.as_deref().unwrap_or("node");
        let port = self.subject.port.map(|port| port.to_string());
        let priority = self.priority.map(|priority| format!("p{priority}"));
        let parts = [
            Some(time.strftime("%Y%m%dT%H%M%S.%3fZ").to_string()),
            Some(self.event.clone()),
            Some(device.to_owned()),
            port,
            self.direction.clone(),
            priority,
        ];
        let id = parts.into_iter().flatten().collect::<Vec<_>>().join("-");
        kept_as(&id)
    }
}

/// An id that the archive keeps something by ([`archive::Record::id`]).
pub(crate) fn kept_as(id: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    id.chars().map(plain).take(128).collect()
}

/// JSON has no word for what is not finite.
fn evidence(event: &Event) -> BTreeMap<String, f64> {
    let finite = event.evidence.iter().filter(|(_, value)| value.is_finite());
    finite.map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// Nanoseconds since 1970 as RFC 3339 in UTC.
pub(crate) mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// The text.
    pub(crate) fn text(nanoseconds: i64) -> String {
        Timestamp::from_nanosecond(nanoseconds.into())
            .unwrap_or_default()
            .to_string()
    }

    #[allow(clippy::trivially_copy_pass_by_ref)] // the signature is serde's
    pub(crate) fn serialize<S: Serializer>(value: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text(*value))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        parse(&String::deserialize(deserializer)?)
    }

    fn parse<E: serde::de::Error>(text: &str) -> Result<i64, E> {
        let time: Timestamp = text.parse().map_err(E::custom)?;
        i64::try_from(time.as_nanosecond()).map_err(E::custom)
    }

    /// The same of what may be absent.
    pub(crate) mod optional {
        use serde::{Deserialize as _, Deserializer, Serializer};

        #[allow(clippy::ref_option)] // the signature is serde's
        pub(crate) fn serialize<S: Serializer>(
            value: &Option<i64>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match value {
                Some(value) => super::serialize(value, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<i64>, D::Error> {
            match Option::<String>::deserialize(deserializer)? {
                Some(text) => super::parse(&text).map(Some),
                None => Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::Direction;
    use signals::detect::{EventKind, Severity};

    fn storm() -> Event {
        Event {
            kind: EventKind::PfcStorm,
            severity: Severity::Critical,
            priority: Some(3),
            direction: Some(Direction::Rx),
            began: 5_000_000_000,
            ended: None,
            evidence: vec![("pause_ratio", 1.0), ("nothing", f64::NAN)],
        }
    }

    fn subject() -> Subject {
        Subject {
            port_id: Some("0000:19:00.0/1".to_owned()),
            device: Some("mlx5_0".to_owned()),
            port: Some(1),
            netdev: Some("eth0".to_owned()),
        }
    }

    /// 2026-11-29 03:12:00 UTC when the rows' clock read zero.
    fn wall(row: u64) -> i64 {
        1_795_921_920_000_000_000 + row.cast_signed()
    }

    #[test]
    fn an_event_is_told_with_times_that_people_read() {
        let opened = EventRecord::opened(subject(), &storm(), wall);
        let json = serde_json::to_value(&opened).unwrap();
        assert_eq!(json["id"], "20261129T031205.000Z-pfc_storm-mlx5_0-1-rx-p3");
        assert_eq!(json["began"], "2026-11-29T03:12:05Z");
        assert_eq!(json["evidence"], serde_json::json!({ "pause_ratio": 1.0 }));
        assert!(json.get("ended").is_none() && json.get("incident").is_none());
        assert_eq!(opened.detail(), "rx priority 3");
    }

    #[test]
    fn what_has_ended_keeps_its_id_and_reads_back() {
        let opened = EventRecord::opened(subject(), &storm(), wall);
        let end = Event {
            ended: Some(9_500_000_000),
            evidence: vec![("peak", 1.0)],
            ..storm()
        };
        let closed = opened.closed(&end, wall);
        assert_eq!(closed.id, opened.id);
        assert_eq!(closed.ended, Some(wall(9_500_000_000)));
        assert_eq!(closed.evidence, opened.evidence);
        let text = serde_json::to_string(&closed).unwrap();
        assert!(text.contains("\"ended\":\"2026-11-29T03:12:09.5Z\""), "{text}");
        assert_eq!(serde_json::from_str::<EventRecord>(&text).unwrap(), closed);
        let text = serde_json::to_string(&opened).unwrap();
        assert_eq!(serde_json::from_str::<EventRecord>(&text).unwrap(), opened);
    }

    #[test]
    fn an_id_can_be_the_name_of_a_file_whatever_the_device_is_called() {
        let odd = Subject {
            device: Some("a/b c".repeat(60)),
            ..subject()
        };
        let id = EventRecord::opened(odd, &storm(), wall).id;
        assert!(id.len() <= 128 && !id.contains(['/', ' ']), "{id}");
    }
}
