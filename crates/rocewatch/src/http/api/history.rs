//! The shape of `/api/v1/history`.

use archive::{Cause, Damage, Stepped};
use jiff::Timestamp;
use model::ABSENT;
use serde::Serialize;

/// A page of history.
#[derive(Serialize)]
pub(crate) struct History {
    /// The time that this page is of.
    from: String,
    to: String,
    step_seconds: f64,
    series: Vec<Series>,
    /// The cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// What of this time cannot be read.
    damages: Vec<Damaged>,
}

/// One counter.
#[derive(Serialize)]
struct Series {
    device: String,
    port: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    netdev: Option<String>,
    source: &'static str,
    counter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    points: Vec<Point>,
}

/// One value, and what went on since the one before.
#[derive(Serialize)]
struct Point {
    time: String,
    value: u64,
    /// The least and the most per second of what counts, or of readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<u64>,
}

/// A part of the archive that cannot be read.
#[derive(Serialize)]
pub(crate) struct Damaged {
    file: String,
    at: u64,
    bytes: u64,
    cause: &'static str,
    why: String,
}

impl History {
    /// A page of what was found between two times in nanoseconds since 1970, the second not included.
    pub(crate) fn new(
        (from, to): (i64, i64),
        step: u64,
        found: &[Stepped],
        next: Option<String>,
        damages: &[Damage],
    ) -> Self {
        Self {
            from: time(from),
            to: time(to),
            step_seconds: step as f64 / 1e9,
            series: found
                .iter()
                .map(Series::of)
                .filter(|series| !series.points.is_empty())
                .collect(),
            next,
            damages: damages.iter().map(Damaged::of).collect(),
        }
    }
}

impl Series {
    fn of(stepped: &Stepped) -> Self {
        let track = &stepped.track;
        let column = &track.columns[stepped.column];
        let meaning = catalog::meaning(&track.driver, track.source, &column.name);
        let there = stepped.steps.iter().filter(|step| step.last != ABSENT);
        Self {
            device: track.device.clone(),
            port: track.port.number,
            netdev: track.netdev.clone(),
            source: track.source.as_str(),
            counter: column.name.to_string(),
            signal: meaning.map(|meaning| meaning.signal().as_str()),
            unit: Some(column.unit.clone()).filter(|unit| !unit.is_empty()),
            points: there
                .map(|step| Point {
                    time: time(step.time.wall),
                    value: step.last,
                    low: step.extremes.map(|extremes| extremes.low),
                    high: step.extremes.map(|extremes| extremes.high),
                })
                .collect(),
        }
    }
}

impl Damaged {
    /// What the archive says of it.
    pub(crate) fn of(damage: &Damage) -> Self {
        Self {
            file: damage.file.clone(),
            at: damage.at,
            bytes: damage.bytes,
            cause: match damage.cause {
                Cause::Torn => "torn",
                Cause::Damaged => "damaged",
            },
            why: damage.why.clone(),
        }
    }
}

/// RFC 3339 of nanoseconds since 1970.
pub(crate) fn time(nanoseconds: i64) -> String {
    Timestamp::from_nanosecond(nanoseconds.into())
        .unwrap_or_default()
        .to_string()
}
