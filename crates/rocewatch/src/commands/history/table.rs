//! History for people: what was unlike the hour before, port by port.

use super::course::{Course, courses};
use super::{Span, before, time};
use crate::shown::{number, sparkline};
use archive::{Archive, Track, TrackSpan};
use jiff::tz::TimeZone;
use std::fmt::Write as _;
use std::num::NonZeroU64;

/// Steps that a time is drawn in.
const STEPS: u64 = 24;
/// Steps of the time before.
const STEPS_BEFORE: u64 = 60;
/// A rate this many times above, or below, that of the time before is shown; where there is none, a step this many times above
/// the mean.
const NOTEWORTHY: f64 = 2.0;
/// Of a column with a heading such as `59 minutes before`.
const WIDTH: usize = 17;

struct Line {
    course: Course,
    /// Growth per second in the time before; `None` if nothing is known of it.
    usual: Option<f64>,
}

impl Line {
    /// How many times as much as usual, or as little; infinite where there was nothing, `None` where nothing is known.
    fn factor(&self) -> Option<f64> {
        let (now, usual) = (self.course.rate(), self.usual?);
        Some(match (now > 0.0, usual > 0.0) {
            (true, true) => (now / usual).max(usual / now),
            (false, false) => 1.0,
            _ => f64::INFINITY,
        })
    }

    /// How many times the mean the highest step is.
    fn unevenness(&self) -> f64 {
        let mean = self.course.rate();
        let rates = self.course.steps.iter().map(|(_, rate)| *rate);
        let most = rates.fold(0.0, f64::max);
        if mean > 0.0 { most / mean } else { 1.0 }
    }

    /// What is noted, the more the further above.
    fn weight(&self) -> f64 {
        self.factor().unwrap_or_else(|| self.unevenness())
    }

    fn is_noteworthy(&self) -> bool {
        if self.course.counts() {
            self.weight() >= NOTEWORTHY
        } else {
            self.course.moved()
        }
    }
}

/// The text. `before` is what `span` is compared with, if there is anything.
pub(super) fn write(
    archive: &Archive,
    tracks: &[TrackSpan],
    span: Span,
    before: Option<Span>,
    all: bool,
    zone: &TimeZone,
) -> String {
    let shown = |time| {
        time::zoned(time, zone)
            .strftime("%Y-%m-%d %H:%M:%S %Z")
            .to_string()
    };
    let mut out = format!("{} to {}", shown(span.from), shown(span.to));
    let usual = before.map(before::words);
    let _ = match &usual {
        Some(usual) => writeln!(out, ", compared with the {usual}"),
        None => writeln!(
            out,
            "\nThere is nothing before this time to compare it with: shown is what moved within it."
        ),
    };
    let head = out.len();
    let mut quiet = 0;
    for found in tracks {
        let (mut shown, hidden): (Vec<_>, Vec<_>) = lines(archive, &found.track, span, before)
            .into_iter()
            .partition(|line| line.is_noteworthy() || (all && line.course.moved()));
        quiet += hidden.len();
        shown.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        if !shown.is_empty() {
            section(
                &found.track,
                &shown,
                usual.as_deref().unwrap_or_default(),
                &mut out,
            );
        }
    }
    let nothing = out.len() == head;
    let were = match &usual {
        Some(usual) => format!("were as in the {usual}"),
        None => "did not change their course".to_owned(),
    };
    let _ = match (nothing, quiet) {
        (true, 0) => writeln!(out, "\nNothing was recorded in this time."),
        (true, _) => writeln!(
            out,
            "\nAll {quiet} counters {were}; --all shows those that moved."
        ),
        (false, _) if all => Ok(()),
        (false, _) => writeln!(out, "\n{quiet} counters {were}; --all shows those that moved."),
    };
    out
}

fn lines(archive: &Archive, track: &Track, span: Span, before: Option<Span>) -> Vec<Line> {
    let step = |length: u64| NonZeroU64::new(length.max(super::SECOND)).unwrap_or(NonZeroU64::MIN);
    let usual = before.map_or_else(Vec::new, |before| {
        courses(archive, track, before, step(before.length() / STEPS_BEFORE))
    });
    let courses = courses(archive, track, span, step(span.length() / STEPS));
    let line = |course: Course| Line {
        usual: usual
            .iter()
            .find(|usual| usual.column.name == course.column.name && !usual.steps.is_empty())
            .map(Course::rate),
        course,
    };
    courses.into_iter().map(line).collect()
}

/// The lines of a track. `usual` heads what they are compared with.
fn section(track: &Track, lines: &[Line], usual: &str, out: &mut String) {
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
        "  {:<34} {:>12} {:>12} {usual:>WIDTH$} {:>8}  course",
        "counter", "per second", "peak", ""
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
            "  {:<34} {now:>12} {peak:>12} {usual:>WIDTH$} {factor:>8}  {}",
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
