//! What left its usual range, in the order in which it did: the first is nearest to the cause.

use super::course::{Course, courses};
use super::{SECOND, Span, before, time};
use crate::shown::number;
use crate::usual::{LEAST, is_outside};
use archive::{Archive, Track, TrackSpan};
use jiff::tz::TimeZone;
use std::fmt::Write as _;
use std::num::NonZeroU64;

/// What is usual is taken from the time before in steps of a minute.
const MINUTE: u64 = 60 * SECOND;

/// A counter that left its range.
struct Departure<'a> {
    at: i64,
    track: &'a Track,
    counter: String,
    rate: f64,
    usual: (f64, f64),
}

/// The text. `before` is what `span` is compared with, if there is anything.
pub(super) fn write(
    archive: &Archive,
    tracks: &[TrackSpan],
    span: Span,
    before: Option<Span>,
    zone: &TimeZone,
) -> String {
    let Some(before) = before else {
        return "There is nothing before this time that could tell what is usual: name a later --since, or leave out --what-moved.\n"
            .to_owned();
    };
    let mut all: Vec<_> = tracks
        .iter()
        .flat_map(|found| departures(archive, &found.track, span, before))
        .collect();
    all.sort_by_key(|departure| departure.at);
    let Some(first) = all.first().map(|departure| departure.at) else {
        return format!("Nothing left the range of the {}.\n", before::words(before));
    };
    let mut out = format!(
        "{:<24} {:>9}  {:<22} {:<34} {:>12}  usual per second\n",
        "time", "after", "port", "counter", "per second"
    );
    for departure in all {
        let shown = time::zoned(departure.at, zone)
            .strftime("%Y-%m-%d %H:%M:%S %Z")
            .to_string();
        let delay = departure.at.abs_diff(first) / SECOND;
        let place = format!(
            "{}/{} {}",
            departure.track.device, departure.track.port.number, departure.track.source
        );
        let (low, high) = departure.usual;
        let _ = writeln!(
            out,
            "{shown:<24} {:>9}  {place:<22} {:<34} {:>12}  {} to {}",
            format!("+{delay} s"),
            departure.counter,
            number(departure.rate),
            number(low),
            number(high)
        );
    }
    out
}

fn departures<'a>(archive: &Archive, track: &'a Track, span: Span, before: Span) -> Vec<Departure<'a>> {
    let step = |nanoseconds| NonZeroU64::new(nanoseconds).unwrap_or(NonZeroU64::MIN);
    let usual = courses(archive, track, before, step(MINUTE));
    courses(archive, track, span, step(SECOND))
        .into_iter()
        .filter(Course::counts)
        .filter_map(|course| {
            let usual = usual
                .iter()
                .find(|usual| usual.column.name == course.column.name)?;
            let range = range(usual)?;
            let (at, rate) = course
                .steps
                .iter()
                .copied()
                .find(|(_, rate)| departs(*rate, range))?;
            Some(Departure {
                at,
                track,
                counter: course.column.name.to_string(),
                rate,
                usual: range,
            })
        })
        .collect()
}

/// The lowest and the highest minute; `None` if nothing is known.
fn range(usual: &Course) -> Option<(f64, f64)> {
    let rates = usual.steps.iter().map(|(_, rate)| *rate);
    let low = rates.clone().reduce(f64::min)?;
    Some((low, rates.fold(low, f64::max)))
}

/// True if the rate of a second is out of the range of the minutes before. What never happened is so as soon as it does.
fn departs(rate: f64, usual: (f64, f64)) -> bool {
    let least = if usual.1 <= 0.0 { f64::MIN_POSITIVE } else { LEAST };
    is_outside(rate, usual, least)
}

#[cfg(test)]
mod tests {
    use super::departs;

    #[test]
    fn what_never_happened_is_out_of_range_as_soon_as_it_does() {
        assert!(departs(1.0, (0.0, 0.0)) && !departs(0.0, (0.0, 0.0)));
        assert!(!departs(7.0, (0.5, 2.0)) && departs(13.0, (0.5, 2.0)));
    }
}
