//! Keeps the rows around what happened: an event opens an incident, and what opens within a minute is part of it.

use super::archivist::Track;
use super::events::Change;
use super::inquiry::Inquiry;
use crate::event::EventRecord;
use crate::incident::{AFTER, BEFORE, IncidentRecord};
use archive::{FullRate, Now, PinError, Writer};
use model::{Host, Port};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What repeats on a port, or is less than critical, is no further incident of that port for so long, nanoseconds: a link
/// that flaps all night must not push out what came before it.
const QUIET: u64 = 600_000_000_000;
/// Tracks that closed lately, whose rows are still in memory; more are not kept.
const MOST_CLOSED: usize = 16;

/// What turns events into incidents.
pub(super) struct Incidents {
    current: Option<Collecting>,
    /// Ports of the incident that has just opened, whose devices are to be asked.
    to_ask: Option<Vec<Arc<Port>>>,
    inquiry: Inquiry,
    /// The incident of each event that is open.
    of_open: BTreeMap<String, String>,
    /// When an incident was opened last, by port and kind.
    opened: BTreeMap<(Option<String>, String), u64>,
    closed: Vec<(u64, Track)>,
}

/// What is kept of the node beside an incident that opens.
pub(super) struct Circumstances {
    /// The ports that are watched, …
    pub(super) watched: Vec<Arc<Port>>,
    /// … and as they are told, with their settings.
    pub(super) told: serde_json::Value,
    /// Events that went on just before.
    pub(super) earlier: Vec<EventRecord>,
}

/// An incident whose rows are being collected.
struct Collecting {
    incident: IncidentRecord,
    /// When it was noticed, on the rows' clock.
    noticed: u64,
    /// Rows until then are on disk.
    written: Option<u64>,
}

impl Incidents {
    pub(super) fn new(host: Arc<dyn Host>) -> Self {
        Self {
            current: None,
            to_ask: None,
            inquiry: Inquiry::new(host),
            of_open: BTreeMap::new(),
            opened: BTreeMap::new(),
            closed: Vec::new(),
        }
    }

    /// Takes in a change; gives the event as it is to be kept.
    pub(super) fn take(
        &mut self,
        change: &Change,
        now: u64,
        describe: impl FnOnce() -> Circumstances,
    ) -> EventRecord {
        let event = &change.event;
        let incident = if change.is_opening() {
            self.join(event, now, describe)
        } else {
            self.of_open.remove(&event.id)
        };
        let event = EventRecord {
            incident,
            ..EventRecord::clone(event)
        };
        if let Some(current) = self.current.as_mut()
            && event.incident.as_ref() == Some(&current.incident.id)
        {
            current.incident.events.retain(|known| known.id != event.id);
            current.incident.events.push(event.clone());
        }
        event
    }

    fn join(
        &mut self,
        event: &EventRecord,
        now: u64,
        describe: impl FnOnce() -> Circumstances,
    ) -> Option<String> {
        if self.current.is_none() {
            self.opened
                .retain(|_, opened| now.saturating_sub(*opened) < QUIET);
            let port = &event.subject.port_id;
            let repeated = self
                .opened
                .keys()
                .any(|(of, kind)| of == port && (*kind == event.event || event.severity != "critical"));
            // What is only to be known is part of an incident, and opens none.
            if repeated || event.severity == "info" {
                return None;
            }
            self.opened.insert((port.clone(), event.event.clone()), now);
            let Circumstances {
                watched,
                told,
                earlier,
            } = describe();
            self.to_ask = Some(watched);
            self.current = Some(Collecting {
                incident: IncidentRecord::opened(event, earlier, told),
                noticed: now,
                written: None,
            });
        }
        let id = self.current.as_ref().map(|current| current.incident.id.clone())?;
        self.of_open.insert(event.id.clone(), id.clone());
        Some(id)
    }

    /// A track has ended; its rows may still be wanted.
    pub(super) fn close(&mut self, track: Track, now: u64) {
        self.closed.push((now, track));
        if self.closed.len() > MOST_CLOSED {
            self.closed.remove(0);
        }
    }

    /// Writes what there is of an incident's rows as soon as it is noticed, so that they survive a crash, again when it is
    /// known who was on the devices, and the rest when they are complete. `open` are the tracks that are being read.
    pub(super) fn write<'a>(
        &'a mut self,
        writer: &mut Writer,
        at: Now,
        open: impl Iterator<Item = &'a Track>,
    ) {
        let now = at.monotonic;
        self.closed.retain(|(at, _)| now.saturating_sub(*at) < BEFORE);
        if let Some(ports) = self.to_ask.take() {
            self.inquiry.begin(&ports, at);
        }
        let Some(current) = &mut self.current else { return };
        let holders = self.inquiry.result(at);
        let told = holders.is_some();
        current.incident.holders = holders.or(current.incident.holders.take());
        let complete = now.saturating_sub(current.noticed) >= AFTER;
        if current.written.is_some() && !complete && !told {
            return;
        }
        let from = match current.written {
            Some(written) => written + 1,
            None => current.noticed.saturating_sub(BEFORE),
        };
        let tracks = self.closed.iter().map(|(_, track)| track).chain(open);
        match current.write(writer, from, now, tracks) {
            Ok(()) => current.written = Some(now),
            Err(error) => {
                tracing::warn!(incident = %current.incident.id, "the rows of an incident are not kept yet: {error}");
            }
        }
        if complete {
            let id = &current.incident.id;
            if current.written == Some(now) {
                let events = current.incident.events.len();
                tracing::info!(incident = %id, events, "an incident is kept: `rocewatch incident show {id}`");
            } else {
                tracing::warn!(incident = %id, "the rows of an incident could not be kept as a whole");
            }
            self.current = None;
        }
    }
}

impl Collecting {
    fn write<'a>(
        &self,
        writer: &mut Writer,
        from: u64,
        to: u64,
        tracks: impl Iterator<Item = &'a Track>,
    ) -> Result<(), PinError> {
        let tracks: Vec<_> = tracks
            .map(|track| {
                (
                    archive::Track::new(&track.port, &track.schema),
                    rows(&track.reader, from, to),
                )
            })
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        let rows: Vec<_> = tracks
            .iter()
            .map(|(track, rows)| FullRate { track, rows })
            .collect();
        let record = self.incident.record();
        if self.written.is_some() {
            writer.extend_pin(&record, &rows)
        } else {
            writer.pin(&record, &rows)
        }
    }
}

/// The rows of a ring that were read in `from..=to`.
fn rows(reader: &ring::Reader, from: u64, to: u64) -> Vec<ring::Row> {
    let newest = reader.pushed();
    let mut row = reader.row();
    let mut found = Vec::new();
    for number in newest.saturating_sub(reader.capacity() as u64)..newest {
        // One that was overwritten meanwhile was too old anyhow.
        if reader.read(number, &mut row).is_ok() && (from..=to).contains(&row.window.ended) {
            found.push(row.clone());
        }
    }
    found
}
