//! Times as people write them.

use crate::commands::moment;
use jiff::{Timestamp, ToSpan as _, Zoned};

/// Where and when people are: in the nights in which clocks are set, one that skipped a day, and at the ends of time.
const NOWS: [&str; 8] = [
    "2026-11-29T10:30:00Z[UTC]",
    "2026-03-29T03:30:00+02:00[Europe/Berlin]",
    "2026-10-25T02:30:00+02:00[Europe/Berlin]",
    "2026-10-25T02:30:00+01:00[Europe/Berlin]",
    "2026-04-05T01:45:00+10:30[Australia/Lord_Howe]",
    "2011-12-31T00:30:00+14:00[Pacific/Apia]",
    "-009999-01-06T00:00:00Z[UTC]",
    "9999-12-29T00:00:00Z[UTC]",
];

/// The input is a text behind a letter that says when it is read.
pub fn check(input: &[u8]) {
    let Some((when, text)) = input.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let now: Zoned = NOWS[usize::from(*when) % NOWS.len()]
        .parse()
        .expect("it is a time");
    let found = match moment(text, &now) {
        Ok(found) => found,
        Err(said) => return assert!(said.contains("is no time"), "{said}"),
    };
    let text = text.trim();
    assert_eq!(found.time_zone(), now.time_zone());
    if text.starts_with('-') && !text.starts_with("-0") && humantime::parse_duration(&text[1..]).is_ok() {
        let ago = humantime::parse_duration(&text[1..]).expect("it was one");
        assert_eq!(found, now.checked_sub(ago).expect("it was in range"));
    } else if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') && text.contains(':') {
        // The last that has been: no day has more than 26 hours, and that of Apia that was skipped none.
        let longest = 50.hours();
        assert!(found <= now, "{text:?} at {now} is {found}");
        assert!(
            now.checked_sub(longest).is_ok_and(|least| found >= least),
            "{text:?} at {now} is {found}"
        );
    } else if let Ok(right) = text.parse::<Timestamp>() {
        assert_eq!(found.timestamp(), right);
    }
}
