//! `Accept` and `Accept-Encoding`, against the grammar and the rules of RFC 9110, 12.4 and 12.5.

use crate::metrics::{Encoding, Format};

const OPEN_METRICS: &str = "application/openmetrics-text";

/// Any text is survived; a header that keeps to the grammar is understood as it says.
pub fn check(input: &[u8]) {
    let Ok(header) = std::str::from_utf8(input) else {
        return;
    };
    let format = Format::negotiate(header);
    let encoding = Encoding::negotiate(header);
    let Some(items) = items(header) else { return };
    let quality = |names: &[&str]| {
        let of = |name: &&str| {
            items
                .iter()
                .filter(|item| item.0 == *name)
                .map(|item| item.1)
                .max()
        };
        names.iter().find_map(of)
    };
    let gzip = quality(&["gzip"]).is_some_and(|thousandths| thousandths > 0);
    assert_eq!(encoding == Encoding::Gzip, gzip);
    let open = quality(&[OPEN_METRICS]).unwrap_or(0);
    // The most specific range that fits counts (12.5.1).
    let text = quality(&["text/plain", "text/*", "*/*"]).unwrap_or(0);
    assert_eq!(format == Format::OpenMetrics, open > 0 && open >= text);
}

/// The elements of a header, each with its quality in thousandths; `None` for one outside of the grammar, or with quoted
/// strings, which no scraper sends.
fn items(header: &str) -> Option<Vec<(String, u16)>> {
    header
        .split(',')
        .map(space_trimmed)
        .filter(|item| !item.is_empty())
        .map(item)
        .collect()
}

fn item(text: &str) -> Option<(String, u16)> {
    let mut parts = text.split(';').map(space_trimmed);
    let name = parts.next().filter(|name| name.split('/').all(is_token))?;
    let mut quality = 1000;
    for part in parts {
        let (key, value) = part
            .split_once('=')
            .filter(|(key, value)| is_token(key) && is_token(value))?;
        if key.eq_ignore_ascii_case("q") {
            quality = thousandths(value)?;
            // Whatever follows the weight belongs to a grammar that was given up (RFC 7231).
            break;
        }
    }
    Some((name.to_ascii_lowercase(), quality))
}

/// `qvalue`: 0 or 1 with up to three digits behind the point.
fn thousandths(value: &str) -> Option<u16> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let is_short = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let digits = format!("{fraction:0<3}");
    match whole {
        "0" if is_short => digits.parse().ok(),
        "1" if is_short && digits == "000" => Some(1000),
        _ => None,
    }
}

/// `OWS` is space and tab.
fn space_trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn is_token(text: &str) -> bool {
    let is_mark = |byte| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}
