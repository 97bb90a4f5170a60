//! `rocewatch history`: what the archive remembers, beside a running daemon or on a copy.

mod before;
mod course;
mod moved;
mod openmetrics;
mod parquet;
mod points;
mod table;

use crate::cli::{History, HistoryFormat};
use crate::failure::Failure;
use crate::past::{Span, Wanted, time};
use archive::{Archive, OpenError, TrackSpan};
use jiff::Zoned;
use jiff::tz::TimeZone;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// Prints it. `now` is the wall time.
pub(super) fn show(options: &History, now: i64) -> Result<(), Failure> {
    if options.format == HistoryFormat::Parquet && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "Parquet is no text: redirect it to a file, as in > history.parquet".to_owned(),
        ));
    }
    let zone = TimeZone::system();
    let span = span(options, &time::zoned(now, &zone))?;
    let archive = open(&options.archive)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = Asked::new(&archive, options, span, zone)?.write(&mut out);
    match written.and_then(|()| out.flush()) {
        // A closed pipe (`| head`) is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Runtime(format!("cannot write the answer: {error}")))
        }
        _ => Ok(()),
    }
}

/// A question to an archive that can be answered.
pub(super) struct Asked<'a> {
    archive: &'a Archive,
    options: &'a History,
    wanted: Wanted<'a>,
    /// Every track of the ports that are wanted.
    all: Vec<TrackSpan>,
    span: Span,
    zone: TimeZone,
}

impl<'a> Asked<'a> {
    /// What `options` ask for, over `span`, in times of `zone`.
    pub(super) fn new(
        archive: &'a Archive,
        options: &'a History,
        span: Span,
        zone: TimeZone,
    ) -> Result<Self, Failure> {
        let wanted = Wanted {
            port: options.port.as_deref(),
            signal: options.signal.as_deref(),
        };
        let tracks = archive.tracks();
        let all: Vec<_> = tracks
            .iter()
            .filter(|found| wanted.track(found))
            .cloned()
            .collect();
        if all.is_empty() {
            return Err(unknown_port(&tracks, options));
        }
        Ok(Self {
            archive,
            options,
            wanted,
            all,
            span,
            zone,
        })
    }

    /// Writes the answer as it is found.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (archive, wanted, span, step) = (self.archive, &self.wanted, self.span, step(self.options));
        let in_span = |found: &&TrackSpan| found.first <= span.to && found.last >= span.from;
        let tracks: Vec<_> = self.all.iter().filter(in_span).cloned().collect();
        match self.options.format {
            HistoryFormat::Table => out.write_all(self.table(&tracks).as_bytes()),
            HistoryFormat::Csv => {
                out.write_all(points::CSV_HEAD.as_bytes())?;
                points::each(archive, &tracks, wanted, span, step, |series| {
                    out.write_all(points::csv(&series).as_bytes())
                })
            }
            HistoryFormat::Json => {
                let series = points::series(archive, &tracks, wanted, span, step);
                serde_json::to_writer_pretty(&mut *out, &series)?;
                out.write_all(b"\n")
            }
            HistoryFormat::Parquet => {
                let mut file = parquet::File::new(out)?;
                points::each(archive, &tracks, wanted, span, step, |series| file.push(&series))?;
                file.finish()
            }
            HistoryFormat::Openmetrics => {
                let view = openmetrics::View {
                    archive,
                    wanted,
                    span,
                    step,
                };
                openmetrics::write(view, &tracks, out)
            }
        }
    }

    fn table(&self, tracks: &[TrackSpan]) -> String {
        let span = self.span.within(tracks);
        let before = before::before(span, self.all.iter());
        if self.options.what_moved {
            moved::write(self.archive, tracks, span, before, &self.zone)
        } else {
            table::write(self.archive, tracks, span, before, self.options.all, &self.zone)
        }
    }
}

fn step(options: &History) -> NonZeroU64 {
    let step = options.step.map_or(SECOND, crate::clock::nanos);
    NonZeroU64::new(step).unwrap_or(NonZeroU64::MIN)
}

/// The time that is asked about at `now`.
pub(super) fn span(options: &History, now: &Zoned) -> Result<Span, Failure> {
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
