//! Times as people write them.

use jiff::tz::TimeZone;
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
        return time_of_day(time, now, back).ok_or_else(wrong);
    }
    if let Some(today) = time_of_day(text, now, 0.days()) {
        let last = if today > *now {
            time_of_day(text, now, 1.day())
        } else {
            Some(today)
        };
        return last.ok_or_else(wrong);
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

fn time_of_day(text: &str, now: &Zoned, back: Span) -> Option<Zoned> {
    // The library takes the time out of a whole date as well.
    let is_time = text.contains(':') && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    let time: jiff::civil::Time = text.parse().ok().filter(|_| is_time)?;
    let day = now.date().checked_sub(back).ok()?;
    day.to_datetime(time).to_zoned(now.time_zone().clone()).ok()
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
        let now: Zoned = "2026-11-29T10:30:00+01:00[Europe/Berlin]".parse().unwrap();
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

    #[test]
    fn nanoseconds_are_those_of_the_epoch() {
        let time = zoned(1_500_000_000, &TimeZone::UTC);
        assert_eq!(nanoseconds(&time), 1_500_000_000);
        assert_eq!(time.to_string(), "1970-01-01T00:00:01.5+00:00[UTC]");
    }
}
