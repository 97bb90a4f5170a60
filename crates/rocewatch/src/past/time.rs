//! Times as people write them.

use jiff::civil::Time;
use jiff::tz::{AmbiguousOffset, AmbiguousZoned, TimeZone};
use jiff::{Span, Timestamp, ToSpan as _, Zoned};

/// The time that `text` means at `now`: `now`, `-2h`, `03:12`, `yesterday 03:12`, `2026-11-29 03:12` or RFC 3339.
///
/// A time of day without a date is the last that has been.
///
/// # Errors
/// What can be written.
pub(crate) fn parse(text: &str, now: &Zoned) -> Result<Zoned, String> {
    let text = text.trim();
    let wrong = || {
        format!(
            "{text:?} is no time: write it as in 03:12, \"yesterday 03:12\", -2h, \"2026-11-29 03:12\" or 2026-11-29T03:12:00Z"
        )
    };
    if text == "now" {
        return Ok(now.clone());
    }
    if let Some(ago) = text.strip_prefix('-') {
        let ago = humantime::parse_duration(ago).map_err(|_| wrong())?;
        return now.checked_sub(ago).map_err(|_| wrong());
    }
    if let Some((day, time)) = text.split_once(' ')
        && let Some(back) = days_back(day)
    {
        let moment = civil_time(time).and_then(|time| on_day(time, now, back)?.compatible().ok());
        return moment.ok_or_else(wrong);
    }
    if let Some(time) = civil_time(text) {
        return last(time, now).ok_or_else(wrong);
    }
    let zone = now.time_zone();
    moment(text, zone).ok_or_else(wrong)
}

fn days_back(day: &str) -> Option<Span> {
    match day {
        "today" => Some(0.days()),
        "yesterday" => Some(1.day()),
        _ => None,
    }
}

fn civil_time(text: &str) -> Option<Time> {
    // The library takes the time out of a whole date as well.
    let is_time = text.contains(':') && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    text.parse().ok().filter(|_| is_time)
}

/// The last time that clocks showed `time`, in the night in which they show it twice as well.
fn last(time: Time, now: &Zoned) -> Option<Zoned> {
    let days = [0.days(), 1.day(), 2.days()];
    let days = days.into_iter().filter_map(|back| on_day(time, now, back));
    let moments = days.flat_map(|moment| {
        let first = moment.clone().compatible();
        let second = moment.later().ok().filter(|_| is_repeated(&first));
        [second, first.ok()]
    });
    moments.flatten().find(|moment| moment <= now)
}

/// True of a moment that comes again when clocks are set back.
fn is_repeated(moment: &Result<Zoned, jiff::Error>) -> bool {
    let again = |moment: &Zoned| {
        let zone = moment.time_zone();
        matches!(
            zone.to_ambiguous_zoned(moment.datetime()).offset(),
            AmbiguousOffset::Fold { .. }
        )
    };
    moment.as_ref().is_ok_and(again)
}

fn on_day(time: Time, now: &Zoned, back: Span) -> Option<AmbiguousZoned> {
    let day = now.date().checked_sub(back).ok()?;
    Some(now.time_zone().to_ambiguous_zoned(day.to_datetime(time)))
}

fn moment(text: &str, zone: &TimeZone) -> Option<Zoned> {
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp.to_zoned(zone.clone()));
    }
    let civil: jiff::civil::DateTime = text.parse().ok()?;
    civil.to_zoned(zone.clone()).ok()
}

/// Nanoseconds since 1970.
pub(crate) fn nanoseconds(time: &Zoned) -> i64 {
    i64::try_from(time.timestamp().as_nanosecond()).unwrap_or(i64::MAX)
}

/// The time of so many nanoseconds since 1970.
pub(crate) fn zoned(nanoseconds: i64, zone: &TimeZone) -> Zoned {
    Timestamp::from_nanosecond(nanoseconds.into())
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_zoned(zone.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        parsed_at("2026-11-29T10:30:00+01:00[Europe/Berlin]", text)
    }

    fn parsed_at(now: &str, text: &str) -> String {
        let now: Zoned = now.parse().unwrap();
        match parse(text, &now) {
            Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
            Err(error) => error,
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, right) in [
            ("now", "2026-11-29 10:30:00 +01:00"),
            ("-2h", "2026-11-29 08:30:00 +01:00"),
            ("-90m", "2026-11-29 09:00:00 +01:00"),
            ("03:12", "2026-11-29 03:12:00 +01:00"),
            ("03:12:30", "2026-11-29 03:12:30 +01:00"),
            // The last that has been.
            ("23:50", "2026-11-28 23:50:00 +01:00"),
            ("today 03:12", "2026-11-29 03:12:00 +01:00"),
            ("yesterday 03:12", "2026-11-28 03:12:00 +01:00"),
            ("2026-07-01 03:12", "2026-07-01 03:12:00 +02:00"),
            ("2026-11-29T03:12:00Z", "2026-11-29 04:12:00 +01:00"),
        ] {
            assert_eq!(parsed(text), right, "{text}");
        }
        for text in ["", "soon", "25:00", "-2x", "tomorrow 03:12", "2026-13-01 03:12"] {
            assert!(parsed(text).contains("is no time"), "{text}");
        }
    }

    /// Clocks go from 02:00 to 03:00 on 2026-03-29, and from 03:00 back to 02:00 on 2026-10-25.
    #[test]
    fn in_the_nights_in_which_clocks_are_set_times_are_what_clocks_showed() {
        let spring = "2026-03-29T09:00:00+02:00[Europe/Berlin]";
        let second_half_past_two = "2026-10-25T02:30:00+01:00[Europe/Berlin]";
        let first_half_past_two = "2026-10-25T02:30:00+02:00[Europe/Berlin]";
        let autumn = "2026-10-25T09:00:00+01:00[Europe/Berlin]";
        for (now, text, right) in [
            (spring, "01:59", "2026-03-29 01:59:00 +01:00"),
            (spring, "03:00", "2026-03-29 03:00:00 +02:00"),
            // No clock showed it: as long after two as it says.
            (spring, "02:30", "2026-03-29 03:30:00 +02:00"),
            (spring, "-8h", "2026-03-29 00:00:00 +01:00"),
            // A day before is 24 hours, yesterday is what the calendar says.
            (spring, "-1d", "2026-03-28 08:00:00 +01:00"),
            (spring, "yesterday 09:00", "2026-03-28 09:00:00 +01:00"),
            // The last that has been is the second one, as soon as it has been.
            (autumn, "02:15", "2026-10-25 02:15:00 +01:00"),
            (autumn, "03:00", "2026-10-25 03:00:00 +01:00"),
            (autumn, "01:59", "2026-10-25 01:59:00 +02:00"),
            (second_half_past_two, "02:15", "2026-10-25 02:15:00 +01:00"),
            (second_half_past_two, "02:45", "2026-10-25 02:45:00 +02:00"),
            (first_half_past_two, "02:15", "2026-10-25 02:15:00 +02:00"),
            (first_half_past_two, "02:45", "2026-10-24 02:45:00 +02:00"),
            (second_half_past_two, "-1h", "2026-10-25 02:30:00 +02:00"),
            // Which of the two is meant can be said.
            (autumn, "2026-10-25 02:15", "2026-10-25 02:15:00 +02:00"),
            (autumn, "2026-10-25T02:15:00+01:00", "2026-10-25 02:15:00 +01:00"),
        ] {
            assert_eq!(parsed_at(now, text), right, "{text} at {now}");
        }
    }

    #[test]
    fn nanoseconds_are_those_of_the_epoch() {
        let time = zoned(1_500_000_000, &TimeZone::UTC);
        assert_eq!(nanoseconds(&time), 1_500_000_000);
        assert_eq!(time.to_string(), "1970-01-01T00:00:01.5+00:00[UTC]");
    }
}
