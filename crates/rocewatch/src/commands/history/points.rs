//! History for programs: every value, as CSV or JSON.

use super::{Span, Wanted, time};
use archive::{Archive, Query, Stepped, TrackSpan};
use jiff::tz::TimeZone;
use model::{ABSENT, Column};
use serde::{Serialize, Serializer};
use std::fmt::Write as _;
use std::io;
use std::num::NonZeroU64;

/// Counters that are looked up at a time: each costs some megabytes a day and second, and each time a pass over the archive.
const AT_A_TIME: usize = 16;

/// One counter over the time asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Series {
    pub(super) device: String,
    pub(super) port: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) netdev: Option<String>,
    pub(super) source: &'static str,
    pub(super) counter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<&'static str>,
    pub(super) unit: String,
    pub(super) points: Vec<Point>,
}

/// One value, and what went on since the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Point {
    /// In nanoseconds since 1970.
    #[serde(serialize_with = "rfc3339")]
    pub(super) time: i64,
    pub(super) value: u64,
    /// The least and the most per second of what counts, or of readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) low: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) high: Option<u64>,
}

impl Series {
    fn of(stepped: &Stepped) -> Self {
        let column: &Column = &stepped.track.schema().columns[stepped.column];
        let there = stepped.steps.iter().filter(|step| step.last != ABSENT);
        let points = there.map(|step| Point {
            time: step.time.wall,
            value: step.last,
            low: step.extremes.map(|extremes| extremes.low),
            high: step.extremes.map(|extremes| extremes.high),
        });
        Self {
            device: stepped.track.device.clone(),
            port: stepped.track.port.number,
            netdev: stepped.track.netdev.clone(),
            source: stepped.track.source.as_str(),
            counter: column.name.to_string(),
            signal: column.meaning.map(|meaning| meaning.signal().as_str()),
            unit: stepped.track.columns[stepped.column].unit.clone(),
            points: points.collect(),
        }
    }
}

/// Every series that is wanted, each second or by `step`.
pub(super) fn series(
    archive: &Archive,
    tracks: &[TrackSpan],
    wanted: &Wanted<'_>,
    span: Span,
    step: NonZeroU64,
) -> Vec<Series> {
    let mut all = Vec::new();
    let taken = each(archive, tracks, wanted, span, step, |series| {
        all.push(series);
        Ok(())
    });
    debug_assert!(taken.is_ok(), "keeping them cannot fail");
    all
}

/// Hands every series that is wanted to `take`, few at a time, so that memory does not grow with what is asked for.
///
/// # Errors
/// What `take` gives.
pub(super) fn each(
    archive: &Archive,
    tracks: &[TrackSpan],
    wanted: &Wanted<'_>,
    span: Span,
    step: NonZeroU64,
    mut take: impl FnMut(Series) -> io::Result<()>,
) -> io::Result<()> {
    for found in tracks {
        let schema = found.track.schema();
        let wanted = schema.columns.iter().filter(|column| wanted.column(column));
        let names: Vec<&str> = wanted.map(|column| &*column.name).collect();
        for (pass, columns) in names.chunks(AT_A_TIME).enumerate() {
            let query = Query {
                port: &found.track.port,
                source: found.track.source,
                columns,
                from: span.from,
                to: span.to,
            };
            let (stepped, damages) = archive.stepped(&query, step);
            // Each pass finds the same.
            for damage in damages.iter().filter(|_| pass == 0) {
                tracing::warn!("left out: {damage}");
            }
            // A query is by port and source, which may have had another track in this time: it has its own turn.
            let own = stepped.iter().filter(|stepped| stepped.track == found.track);
            own.map(Series::of).try_for_each(&mut take)?;
        }
    }
    Ok(())
}

/// The first line of CSV.
pub(super) const CSV_HEAD: &str = "time,device,port,netdev,source,counter,signal,unit,value,low,high\n";

/// A series as lines of CSV (RFC 4180).
pub(super) fn csv(series: &Series) -> String {
    let text = [
        quoted(&series.device),
        series.port.to_string(),
        quoted(series.netdev.as_deref().unwrap_or_default()),
        series.source.to_owned(),
        quoted(&series.counter),
        series.signal.unwrap_or_default().to_owned(),
        quoted(&series.unit),
    ]
    .join(",");
    let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let mut out = String::new();
    for point in &series.points {
        let _ = writeln!(
            out,
            "{},{text},{},{},{}",
            utc(point.time),
            point.value,
            number(point.low),
            number(point.high)
        );
    }
    out
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn utc(nanoseconds: i64) -> jiff::Timestamp {
    time::zoned(nanoseconds, &TimeZone::UTC).timestamp()
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn rfc3339<S: Serializer>(nanoseconds: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&utc(*nanoseconds))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_field_with_a_comma_or_quote_is_quoted() {
        assert_eq!(super::quoted("SwLinkUp,32"), "\"SwLinkUp,32\"");
        assert_eq!(super::quoted("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(super::quoted("rx"), "rx");
    }
}
