//! `rocewatch history`: what the archive remembers, beside a running daemon or on a copy.

mod course;
mod moved;
mod points;
mod table;

use super::print;
use crate::cli::{History, HistoryFormat};
use crate::failure::Failure;
use crate::past::{Span, Wanted, time};
use archive::{Archive, OpenError, TrackSpan};
use jiff::Zoned;
use jiff::tz::TimeZone;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// Prints it. `now` is the wall time.
pub(super) fn show(options: &History, now: i64) -> Result<(), Failure> {
    let zone = TimeZone::system();
    let span = span(options, &time::zoned(now, &zone))?;
    let archive = open(&options.archive)?;
    let wanted = Wanted {
        port: options.port.as_deref(),
        signal: options.signal.as_deref(),
    };
    let all = archive.tracks();
    let tracks: Vec<TrackSpan> = all
        .iter()
        .filter(|found| wanted.track(found) && found.first <= span.to && found.last >= span.from)
        .cloned()
        .collect();
    if !all.iter().any(|found| wanted.track(found)) {
        return Err(unknown_port(&all, options));
    }
    let text = match options.format {
        HistoryFormat::Table if options.what_moved => moved::write(&archive, &tracks, span, &zone),
        HistoryFormat::Table => table::write(&archive, &tracks, span.within(&tracks), options.all, &zone),
        HistoryFormat::Csv => points::csv(&points::series(&archive, &tracks, &wanted, span, step(options))),
        HistoryFormat::Json => {
            let series = points::series(&archive, &tracks, &wanted, span, step(options));
            serde_json::to_string_pretty(&series)
                .map_err(|error| Failure::Runtime(format!("cannot write JSON: {error}")))?
                + "\n"
        }
    };
    print(&text)
}

fn step(options: &History) -> NonZeroU64 {
    let step = options.step.map_or(SECOND, crate::clock::nanos);
    NonZeroU64::new(step).unwrap_or(NonZeroU64::MIN)
}

fn span(options: &History, now: &Zoned) -> Result<Span, Failure> {
    let parse = |text: &str| {
        time::parse(text, now)
            .map(|time| time::nanoseconds(&time))
            .map_err(Failure::Usage)
    };
    let around = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    let span = if let Some(at) = &options.at {
        let (at, window) = (parse(at)?, around(options.window));
        Span {
            from: at.saturating_sub(window),
            to: at.saturating_add(window),
        }
    } else {
        Span {
            from: parse(&options.since)?,
            to: parse(&options.until)?,
        }
    };
    if span.from < span.to {
        Ok(span)
    } else {
        Err(Failure::Usage("--since is not before --until".to_owned()))
    }
}

/// Opens an archive to look things up.
pub(super) fn open(folder: &Path) -> Result<Archive, Failure> {
    Archive::open(folder).map_err(|error| {
        let remedy = match error {
            OpenError::None(_) | OpenError::Io { .. } => {
                "; the daemon keeps one if it runs with --state DIR, in DIR/archive: name it with --archive"
            }
            _ => "",
        };
        Failure::Runtime(format!(
            "cannot read the archive in {}: {error}{remedy}",
            folder.display()
        ))
    })
}

fn unknown_port(all: &[TrackSpan], options: &History) -> Failure {
    let mut devices: Vec<_> = all.iter().map(|found| found.track.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    Failure::Runtime(match &options.port {
        Some(port) if !devices.is_empty() => {
            format!("the archive has no port {port:?}; it has {}", devices.join(", "))
        }
        _ => "the archive is empty: nothing has been recorded yet".to_owned(),
    })
}
