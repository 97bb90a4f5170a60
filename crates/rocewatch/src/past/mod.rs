//! What the archive remembers, for the command and for the API.

pub(crate) mod families;
pub(crate) mod time;

use archive::TrackSpan;
use model::Column;

/// A time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Span {
    pub(crate) fn length(self) -> u64 {
        self.to.abs_diff(self.from)
    }

    /// As much of it as there are rows of.
    pub(crate) fn within(self, tracks: &[TrackSpan]) -> Self {
        let first = tracks.iter().map(|found| found.first).min();
        let last = tracks.iter().map(|found| found.last).max();
        Self {
            from: first.map_or(self.from, |first| self.from.max(first)),
            to: last.map_or(self.to, |last| self.to.min(last)),
        }
    }
}

/// What is asked for.
pub(crate) struct Wanted<'a> {
    pub(crate) port: Option<&'a str>,
    pub(crate) signal: Option<&'a str>,
}

impl Wanted<'_> {
    pub(crate) fn track(&self, found: &TrackSpan) -> bool {
        let track = &found.track;
        let names = [
            Some(track.device.as_str()),
            track.netdev.as_deref(),
            Some(track.port.device.as_str()),
        ];
        self.port.is_none_or(|port| names.contains(&Some(port)))
    }

    /// By the driver's name or by the signal's.
    pub(crate) fn column(&self, column: &Column) -> bool {
        let signal = column.meaning.map(|meaning| meaning.signal().as_str());
        self.signal
            .is_none_or(|wanted| *column.name == *wanted || signal == Some(wanted))
    }
}
