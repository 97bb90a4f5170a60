//! What a time is compared with: the hour before it, or as much of it as there is.

use super::{SECOND, Span};
use archive::TrackSpan;

const HOUR: u64 = 3_600 * SECOND;
const MINUTE: u64 = 60 * SECOND;

/// The time before `span` that `tracks` have rows of, an hour at most; `None` if there is none.
pub(super) fn before<'a>(span: Span, tracks: impl Iterator<Item = &'a TrackSpan>) -> Option<Span> {
    let hour = Span {
        from: span.from.saturating_sub_unsigned(HOUR),
        to: span.from,
    };
    let in_it = tracks.filter(|found| found.first < hour.to && found.last >= hour.from);
    let first = in_it.map(|found| found.first).min()?;
    Some(Span {
        from: first.max(hour.from),
        to: hour.to,
    })
}

/// How people call it: `hour before`, `7 minutes before`.
pub(super) fn words(before: Span) -> String {
    let length = before.length();
    // A row late at its begin makes no other comparison of an hour.
    if length >= HOUR - MINUTE {
        return "hour before".to_owned();
    }
    let (count, unit) = if length >= 2 * MINUTE {
        (length / MINUTE, "minute")
    } else {
        (length.div_ceil(SECOND), "second")
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} before")
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive::Track;
    use model::{DeviceId, PortId, SourceKind};
    use std::sync::Arc;

    const NOW: i64 = 1_795_910_400_000_000_000;

    fn seconds(count: i64) -> i64 {
        count * SECOND.cast_signed()
    }

    fn found(first: i64, last: i64) -> TrackSpan {
        let track = Track {
            port: PortId {
                device: DeviceId::pci("0000:1a:00.0"),
                number: 1,
            },
            source: SourceKind::Ethtool,
            device: "mlx5_0".to_owned(),
            netdev: None,
            driver: "mlx5_core".to_owned(),
            columns: Box::default(),
        };
        TrackSpan {
            track: Arc::new(track),
            first: NOW + seconds(first),
            last: NOW + seconds(last),
            rows: 1,
        }
    }

    fn called(tracks: &[TrackSpan]) -> Option<String> {
        let window = Span {
            from: NOW,
            to: NOW + seconds(900),
        };
        before(window, tracks.iter()).map(words)
    }

    #[test]
    fn a_time_is_compared_with_what_there_is_before_it() {
        let hour = Some("hour before".to_owned());
        assert_eq!(called(&[found(-90_000, 900)]), hour);
        assert_eq!(called(&[found(-3_590, 900)]), hour);
        assert_eq!(
            called(&[found(-430, 900), found(-200, 5)]),
            Some("7 minutes before".to_owned())
        );
        assert_eq!(called(&[found(-90, 900)]), Some("90 seconds before".to_owned()));
        assert_eq!(called(&[found(-1, 900)]), Some("1 second before".to_owned()));
        // Nothing, and nothing for more than an hour.
        assert_eq!(called(&[found(0, 900)]), None);
        assert_eq!(called(&[found(-90_000, -4_000), found(10, 900)]), None);
    }
}
