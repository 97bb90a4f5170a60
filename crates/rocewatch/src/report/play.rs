//! Plays the rows of one port once more, and measures while they do.

use super::moved::{Moved, Watcher};
use super::{Span, Times};
use archive::{Archive, Query, RowTime};
use catalog::{Direction, Signal};
use doctor::{Look, PortWindow};
use model::{Port, Schema, SourceKind};
use serde::Serialize;
use signals::PortSignals;
use std::collections::BTreeMap;
use std::sync::Arc;

const SECOND: i64 = 1_000_000_000;
/// Rates are taken over this span.
const WINDOW: u64 = SECOND.unsigned_abs();
/// What happened so long before the first event began may belong to it.
const LEAD: i64 = 2 * SECOND;

/// A port, and what its rows tell.
pub(super) struct Played {
    pub(super) port: Port,
    pub(super) measures: Vec<Measured>,
    pub(super) moved: Vec<Moved>,
    /// Its traffic during the incident.
    pub(super) window: Option<PortWindow>,
}

/// One measure before, during and after.
#[derive(Serialize)]
pub(crate) struct Measured {
    pub(crate) measure: &'static str,
    pub(crate) unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) during: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peak: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<f64>,
    /// One value a second, from the first row on; `null` where nobody knows.
    pub(crate) course: Vec<Option<f64>>,
}

/// A measure of a port: its name, its unit, and how it is taken.
type Measure = (&'static str, &'static str, fn(&PortSignals) -> Option<f64>);

const MEASURES: [Measure; 11] = [
    ("pause received", "ratio", |port| {
        longest_pause(port, Direction::Rx)
    }),
    ("pause sent", "ratio", |port| longest_pause(port, Direction::Tx)),
    ("utilization received", "ratio", |port| {
        port.utilization(Direction::Rx)
    }),
    ("utilization sent", "ratio", |port| {
        port.utilization(Direction::Tx)
    }),
    ("CE-marked packets", "per second", |port| {
        sum(port, &[Signal::EcnRxCe])
    }),
    ("CNPs sent", "per second", |port| sum(port, &[Signal::CnpTx])),
    ("CNPs received", "per second", |port| {
        sum(port, &[Signal::CnpRxHandled, Signal::CnpRxIgnored]).or_else(|| sum(port, &[Signal::CnpRx]))
    }),
    ("sequence errors", "per second", |port| {
        sum(port, &[Signal::RoceRxOutOfSequence, Signal::RoceRxNakSequence])
    }),
    ("timeouts", "per second", |port| {
        sum(port, &[Signal::RoceAckTimeout])
    }),
    ("uncorrectable code words", "per second", |port| {
        sum(port, &[Signal::FecUncorrectableBlocks])
    }),
    ("link up", "state", |port| {
        port.reading(Signal::LinkUp, None).map(|up| up as f64)
    }),
];

fn longest_pause(port: &PortSignals, direction: Direction) -> Option<f64> {
    (0..8)
        .filter_map(|priority| port.pause_ratio(direction, priority))
        .reduce(f64::max)
}

fn sum(port: &PortSignals, signals: &[Signal]) -> Option<f64> {
    signals
        .iter()
        .filter_map(|signal| port.per_second(*signal, None))
        .reduce(|sum, rate| sum + rate)
}

/// The ports that there are rows of, with as much of their facts as rows need.
pub(super) fn ports(archive: &Archive) -> Vec<Port> {
    let mut ports = BTreeMap::new();
    for span in archive.tracks() {
        let track = &span.track;
        ports.entry(track.port.clone()).or_insert_with(|| Port {
            netdev: track.netdev.clone(),
            ..Port::bare(track.port.clone(), &track.device, &track.driver)
        });
    }
    ports.into_values().collect()
}

/// One row, and what it is of.
struct PlayedRow {
    time: RowTime,
    schema: Arc<Schema>,
    values: Box<[u64]>,
}

fn rows(archive: &Archive, port: &Port, damages: &mut Vec<String>) -> Vec<PlayedRow> {
    let mut all = Vec::new();
    for source in SourceKind::ALL {
        let query = Query {
            port: &port.id,
            source,
            columns: &[],
            from: i64::MIN,
            to: i64::MAX,
        };
        let found = archive.rows(&query);
        damages.extend(found.damages.iter().map(ToString::to_string));
        for rows in found.rows {
            let schema = Arc::new(rows.track.schema());
            for (at, time) in rows.times.iter().enumerate() {
                all.push(PlayedRow {
                    time: *time,
                    schema: Arc::clone(&schema),
                    values: rows.columns.iter().map(|column| column.values[at]).collect(),
                });
            }
        }
    }
    all.sort_by_key(|row| row.time.window.ended);
    all
}

/// Opens a track; rows of the past are as recent as can be.
fn open(signals: &mut PortSignals, schema: &Arc<Schema>) {
    signals.open(Arc::clone(schema));
    signals.set_fresh(schema.source, true);
}

impl Played {
    /// Plays all rows of a port.
    pub(super) fn of(archive: &Archive, port: &Port, times: &Times, damages: &mut Vec<String>) -> Self {
        let rows = rows(archive, port, damages);
        let mut player = Player::new(port, times, &rows);
        for row in &rows {
            player.take(row);
        }
        player.finish()
    }
}

/// A port while its rows play.
struct Player<'a> {
    port: &'a Port,
    during: Span,
    events: &'a [Span],
    signals: PortSignals,
    schemas: BTreeMap<SourceKind, Arc<Schema>>,
    watcher: Watcher,
    /// Of each measure, a value a second.
    courses: Vec<Vec<Option<f64>>>,
    /// Wall time of the first value, and of the next.
    first: i64,
    next: i64,
    /// When the newest row was read, on the rows' clock.
    last: u64,
    begin: Option<Look>,
    end: Option<Look>,
}

impl<'a> Player<'a> {
    fn new(port: &'a Port, times: &'a Times, rows: &[PlayedRow]) -> Self {
        let mut signals = PortSignals::new(signals::Options { window: WINDOW });
        let mut schemas = BTreeMap::new();
        for row in rows {
            // All sources that the port has are known at once, so that each signal is served by the same one all along.
            schemas.entry(row.schema.source).or_insert_with(|| {
                open(&mut signals, &row.schema);
                Arc::clone(&row.schema)
            });
        }
        signals.settle();
        let first = rows.first().map_or(0, |row| row.time.wall) + SECOND;
        Self {
            port,
            during: times.during,
            events: &times.events,
            signals,
            schemas,
            watcher: Watcher::new(times.during.from.saturating_sub(LEAD), times.unusual.clone()),
            courses: vec![Vec::new(); MEASURES.len()],
            first,
            next: first,
            last: 0,
            begin: None,
            end: None,
        }
    }

    fn take(&mut self, row: &PlayedRow) {
        let (source, wall) = (row.schema.source, row.time.wall);
        while wall >= self.next {
            for ((.., measure), course) in MEASURES.iter().zip(&mut self.courses) {
                course.push(measure(&self.signals));
            }
            self.next += SECOND;
        }
        if self.begin.is_none() && wall >= self.during.from {
            self.begin = Some(self.look());
        }
        if self.end.is_none() && wall > self.during.to {
            self.end = Some(self.look());
        }
        let former = self.schemas.insert(source, Arc::clone(&row.schema));
        if former.is_some_and(|former| !Arc::ptr_eq(&former, &row.schema)) {
            open(&mut self.signals, &row.schema);
        }
        self.signals.row(source, row.time.window, &row.values);
        self.last = row.time.window.ended;
        self.watcher.look(source, wall, &self.signals);
    }

    fn look(&self) -> Look {
        Look::at(self.last, self.port, &self.signals)
    }

    fn finish(mut self) -> Played {
        let end = self.end.take().unwrap_or_else(|| self.look());
        let window = self
            .begin
            .as_ref()
            .and_then(|begin| PortWindow::between(begin, &end));
        let measures = MEASURES.iter().zip(&self.courses);
        let measures = measures.filter(|(_, course)| course.iter().any(Option::is_some));
        let measures = measures.map(|((measure, unit, _), course)| self.measured(measure, unit, course));
        Played {
            measures: measures.collect(),
            window,
            moved: self.watcher.moved(&self.port.device, self.port.id.number),
            port: self.port.clone(),
        }
    }

    fn measured(&self, measure: &'static str, unit: &'static str, course: &[Option<f64>]) -> Measured {
        let time = |at: usize| {
            self.first
                .saturating_add(SECOND.saturating_mul(i64::try_from(at).unwrap_or(i64::MAX)))
        };
        let of = |is_meant: &dyn Fn(i64) -> bool| {
            let seconds = course.iter().enumerate().filter(|(at, _)| is_meant(time(*at)));
            seconds.filter_map(|(_, value)| *value).collect::<Vec<f64>>()
        };
        // A value is of the second before it.
        let is_in = |time: i64, span: &Span| (span.from..span.to.saturating_add(SECOND)).contains(&time);
        let during = of(&|time| self.events.iter().any(|event| is_in(time, event)));
        let after = self.during.to.saturating_add(2 * SECOND);
        Measured {
            measure,
            unit,
            before: mean(&of(&|time| time < self.during.from)),
            during: mean(&during),
            peak: during.iter().copied().reduce(f64::max),
            after: mean(&of(&|time| time >= after)),
            course: course.to_vec(),
        }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DeviceId, PortId};

    /// A value a second from the first on: calm, a storm, calm, a second storm, calm.
    #[test]
    fn the_calm_between_two_storms_is_of_neither() {
        let span = |from: i64, to: i64| Span {
            from: from * SECOND,
            to: to * SECOND,
        };
        let times = Times {
            during: span(5, 30),
            events: vec![span(5, 9), span(25, 30)],
            unusual: Vec::new(),
        };
        let id = PortId {
            device: DeviceId::pci("0000:1a:00.0"),
            number: 1,
        };
        let port = Port::bare(id, "mlx5_0", "mlx5_core");
        let player = Player::new(&port, &times, &[]);
        let storms = |second| (5..10).contains(&second) || (25..31).contains(&second);
        let course: Vec<_> = (1..40)
            .map(|second| Some(if storms(second) { 0.6 } else { 0.0 }))
            .collect();
        let measured = player.measured("pause received", "ratio", &course);
        let told = (measured.before, measured.during, measured.peak, measured.after);
        let mean = told.1.unwrap();
        assert!((mean - 0.6).abs() < 1e-9, "{mean}");
        assert_eq!((told.0, told.2, told.3), (Some(0.0), Some(0.6), Some(0.0)));
    }
}
