//! History for people: what was unlike the hour before, port by port.

use super::course::{Course, courses};
use super::{Span, time};
use crate::shown::{number, sparkline};
use archive::{Archive, TrackSpan};
use jiff::tz::TimeZone;
use std::fmt::Write as _;
use std::num::NonZeroU64;

/// Steps that a time is drawn in.
const STEPS: u64 = 24;
/// What it is compared with.
const HOUR: u64 = 3_600_000_000_000;
/// A rate this many times above, or below, that of the hour before is shown.
const NOTEWORTHY: f64 = 2.0;

struct Line {
    course: Course,
    /// Growth per second in the hour before; `None` if nothing is known of it.
    usual: Option<f64>,
}

impl Line {
    /// How many times as much as usual, or as little; infinite where there was nothing.
    fn factor(&self) -> f64 {
        let (now, usual) = (self.course.rate(), self.usual.unwrap_or(0.0));
        match (now > 0.0, usual > 0.0) {
            (true, true) => (now / usual).max(usual / now),
            (false, false) => 1.0,
            _ => f64::INFINITY,
        }
    }

    fn is_noteworthy(&self) -> bool {
        if self.course.counts() {
            self.factor() >= NOTEWORTHY
        } else {
            self.course.moved()
        }
    }
}

/// The text.
pub(super) fn write(
    archive: &Archive,
    tracks: &[TrackSpan],
    span: Span,
    all: bool,
    zone: &TimeZone,
) -> String {
    let shown = |time| time::zoned(time, zone).strftime("%Y-%m-%d %H:%M:%S").to_string();
    let mut out = format!(
        "{} to {} ({})\n",
        shown(span.from),
        shown(span.to),
        time::zoned(span.to, zone).strftime("%Z")
    );
    let step = NonZeroU64::new((span.length() / STEPS).max(1_000_000_000)).unwrap_or(NonZeroU64::MIN);
    let before = Span {
        from: span.from.saturating_sub_unsigned(HOUR),
        to: span.from,
    };
    let hour = NonZeroU64::new(HOUR / 60).unwrap_or(NonZeroU64::MIN);
    let mut quiet = 0;
    for found in tracks {
        let usual = courses(archive, &found.track, before, hour);
        let lines: Vec<_> = courses(archive, &found.track, span, step)
            .into_iter()
            .map(|course| Line {
                usual: usual
                    .iter()
                    .find(|usual| usual.column.name == course.column.name && !usual.steps.is_empty())
                    .map(Course::rate),
                course,
            })
            .collect();
        let (mut shown, hidden): (Vec<_>, Vec<_>) = lines
            .into_iter()
            .partition(|line| line.is_noteworthy() || (all && line.course.moved()));
        quiet += hidden.len();
        shown.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
        if !shown.is_empty() {
            section(&found.track, &shown, &mut out);
        }
    }
    let _ = match (out.lines().count(), quiet) {
        (1, 0) => writeln!(out, "\nNothing was recorded in this time."),
        (1, _) => writeln!(
            out,
            "\nNothing was unlike the hour before: {quiet} counters; --all shows those that moved."
        ),
        _ if all => Ok(()),
        _ => writeln!(
            out,
            "\n{quiet} counters were as in the hour before; --all shows those that moved."
        ),
    };
    out
}

fn section(track: &archive::Track, lines: &[Line], out: &mut String) {
    let netdev = track
        .netdev
        .as_deref()
        .map(|netdev| format!("  {netdev}"))
        .unwrap_or_default();
    let _ = writeln!(
        out,
        "\n{}/{}{netdev}  {}",
        track.device, track.port.number, track.source
    );
    let _ = writeln!(
        out,
        "  {:<34} {:>12} {:>12} {:>12} {:>8}  course",
        "counter", "per second", "peak", "hour before", ""
    );
    for line in lines {
        let course = &line.course;
        let rates: Vec<f64> = course.steps.iter().map(|(_, rate)| *rate).collect();
        let (now, factor) = if course.counts() {
            (number(course.rate()), factor(line))
        } else {
            (number(rates.last().copied().unwrap_or(0.0)), "is".to_owned())
        };
        let peak = course.peak.map(|peak| number(peak as f64)).unwrap_or_default();
        let usual = line
            .usual
            .filter(|_| course.counts())
            .map(number)
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "  {:<34} {now:>12} {peak:>12} {usual:>12} {factor:>8}  {}",
            course.column.name,
            sparkline(&rates)
        );
        if let Some(meaning) = course.column.meaning {
            let _ = writeln!(out, "      {}", meaning.entry.meaning);
        }
    }
}

fn factor(line: &Line) -> String {
    let Some(usual) = line.usual else {
        return String::new();
    };
    let now = line.course.rate();
    if usual <= 0.0 {
        "new".to_owned()
    } else if now <= 0.0 {
        "ceased".to_owned()
    } else if now >= usual {
        format!("{:.1}×", now / usual)
    } else {
        format!("1/{:.1}", usual / now)
    }
}
