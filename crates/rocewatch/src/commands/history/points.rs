//! History for programs: every value, as CSV or JSON.

use super::{Span, Wanted, time};
use archive::{Archive, Query, TrackSpan};
use jiff::tz::TimeZone;
use model::{ABSENT, Column};
use serde::Serialize;
use std::fmt::Write as _;
use std::num::NonZeroU64;

/// One counter over the time asked for.
#[derive(Serialize)]
pub(super) struct Series {
    device: String,
    port: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    netdev: Option<String>,
    source: &'static str,
    counter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'static str>,
    unit: String,
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

/// Every series that is wanted, each second or by `step`.
pub(super) fn series(
    archive: &Archive,
    tracks: &[TrackSpan],
    wanted: &Wanted<'_>,
    span: Span,
    step: NonZeroU64,
) -> Vec<Series> {
    let mut all = Vec::new();
    for found in tracks {
        let schema = found.track.schema();
        let columns: Vec<&str> = schema
            .columns
            .iter()
            .filter(|column| wanted.column(column))
            .map(|column| &*column.name)
            .collect();
        if columns.is_empty() {
            continue;
        }
        let query = Query {
            port: &found.track.port,
            source: found.track.source,
            columns: &columns,
            from: span.from,
            to: span.to,
        };
        let (stepped, damages) = archive.stepped(&query, step);
        for damage in damages {
            tracing::warn!("left out: {damage}");
        }
        all.extend(stepped.into_iter().map(|stepped| {
            let column: &Column = &stepped.track.schema().columns[stepped.column];
            let points = stepped
                .steps
                .iter()
                .filter(|step| step.last != ABSENT)
                .map(|step| Point {
                    time: time::zoned(step.time.wall, &TimeZone::UTC)
                        .timestamp()
                        .to_string(),
                    value: step.last,
                    low: step.extremes.map(|extremes| extremes.low),
                    high: step.extremes.map(|extremes| extremes.high),
                });
            Series {
                device: stepped.track.device.clone(),
                port: stepped.track.port.number,
                netdev: stepped.track.netdev.clone(),
                source: stepped.track.source.as_str(),
                counter: column.name.to_string(),
                signal: column.meaning.map(|meaning| meaning.signal().as_str()),
                unit: stepped.track.columns[stepped.column].unit.clone(),
                points: points.collect(),
            }
        }));
    }
    all
}

/// As RFC 4180 has it.
pub(super) fn csv(all: &[Series]) -> String {
    let mut out = "time,device,port,netdev,source,counter,signal,unit,value,low,high\n".to_owned();
    for series in all {
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
        for point in &series.points {
            let _ = writeln!(
                out,
                "{},{text},{},{},{}",
                point.time,
                point.value,
                number(point.low),
                number(point.high)
            );
        }
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

#[cfg(test)]
mod tests {
    #[test]
    fn a_field_with_a_comma_or_quote_is_quoted() {
        assert_eq!(super::quoted("SwLinkUp,32"), "\"SwLinkUp,32\"");
        assert_eq!(super::quoted("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(super::quoted("rx"), "rx");
    }
}
