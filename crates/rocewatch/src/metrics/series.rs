//! What a series shows, and its value now.

use super::number::Number;
use crate::agent::{PortView, READ_TIME_BOUNDS, ReadTimes, SourceView};
use catalog::{Direction, Scale};
use model::{ABSENT, SourceKind};
use signals::Histogram;
use std::sync::atomic::Ordering::Relaxed;

/// Where the value of a series comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Never changes as long as the series exists.
    Constant(f64),
    /// Something of a port.
    Port(usize, PortValue),
    /// Something of a source of a port.
    Source(usize, SourceKind, SourceValue),
    /// How often the events of a tally have opened.
    EventsOpened(usize),
    /// Whether one of them is open.
    EventOpen(usize),
    /// Rows in all rings.
    RingRows,
    /// How many series there are, and how many found no room.
    SeriesShown,
    SeriesLeftOut,
}

/// A value of a port.
#[derive(Clone, Copy, Debug)]
pub(super) enum PortValue {
    /// The signal in this slot of the port's signals.
    Signal(usize, Scale),
    Utilization(Direction),
    PauseRatio(Direction, u8),
    PauseUpperBound(Direction, u8),
    PfcEnabled(u8),
    Storm(Direction, u8),
    CeRatio,
    CnpPerCe,
    CnpIgnoredRatio,
    Resets,
    Implausible,
    UtilizationHistogram(Direction, Cell),
    PauseHistogram(Direction, u8, Cell),
}

/// A value of a source.
#[derive(Clone, Copy, Debug)]
pub(super) enum SourceValue {
    /// The counter in this column as it was read.
    Raw(usize),
    Stalled,
    Frozen,
    Full,
    Interval,
    Samples,
    Missed,
    Errors(&'static str),
    ReadTime(Cell),
}

/// One line of a histogram.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    /// Observations up to the bound of this position; the one behind the last is `+Inf`.
    Bucket(usize),
    Sum,
    Count,
}

impl PortValue {
    pub(super) fn of(self, view: &PortView) -> Option<Number> {
        let signals = &view.signals;
        let ratio = match self {
            Self::Signal(slot, scale) => {
                return signals.value(slot).map(|value| Number::Scaled(value, scale));
            }
            Self::UtilizationHistogram(direction, cell) => {
                return signals
                    .utilization_histogram(direction)
                    .map(|found| histogram(found, cell));
            }
            Self::PauseHistogram(direction, priority, cell) => {
                return signals
                    .pause_histogram(direction, priority)
                    .map(|found| histogram(found, cell));
            }
            Self::PfcEnabled(priority) => {
                let enabled = view.pfc_mask()? & (1 << priority) != 0;
                return Some(Number::count(enabled.into()));
            }
            Self::Storm(direction, priority) => {
                let open = view.has_storm(direction, priority);
                return Some(Number::count(open.into()));
            }
            Self::Resets => return Some(Number::count(signals.quality().resets)),
            Self::Implausible => return Some(Number::count(signals.quality().implausible)),
            Self::Utilization(direction) => signals.utilization(direction),
            Self::PauseRatio(direction, priority) => signals.pause_ratio(direction, priority),
            Self::PauseUpperBound(direction, priority) => signals.pause_upper_bound(direction, priority),
            Self::CeRatio => signals.ce_ratio(),
            Self::CnpPerCe => signals.cnp_per_ce(),
            Self::CnpIgnoredRatio => signals.cnp_ignored_ratio(),
        };
        ratio.map(Number::Float)
    }
}

fn histogram(histogram: &Histogram, cell: Cell) -> Number {
    match cell {
        Cell::Bucket(at) => Number::count(histogram.cumulative(at)),
        Cell::Sum => Number::Float(histogram.sum()),
        Cell::Count => Number::count(histogram.count()),
    }
}

impl SourceValue {
    pub(super) fn of(self, view: &PortView, source: &SourceView, kind: SourceKind) -> Option<Number> {
        let health = &source.health;
        Some(match self {
            Self::Raw(column) => {
                let value = *view.signals.raw(kind)?.1.get(column)?;
                let shown = source.fresh && !source.frozen && value != ABSENT;
                return shown.then(|| Number::count(value));
            }
            Self::Stalled => Number::count(source.stalled.into()),
            Self::Frozen => Number::count(source.frozen.into()),
            Self::Full => Number::count(source.full.len() as u64),
            Self::Interval => match health.interval.load(Relaxed) {
                0 => return None,
                nanos => Number::Scaled(
                    nanos,
                    Scale {
                        multiply: 1,
                        decimals: 9,
                    },
                ),
            },
            Self::Samples => Number::count(health.samples.load(Relaxed)),
            Self::Missed => Number::count(health.late.load(Relaxed) + health.failed.load(Relaxed)),
            Self::Errors(reason) => Number::count(*source.errors.get(reason)?),
            Self::ReadTime(cell) => read_time(&source.read_times, cell),
        })
    }
}

fn read_time(times: &ReadTimes, cell: Cell) -> Number {
    match cell {
        Cell::Bucket(at) => Number::count(times.up_to(at)),
        Cell::Count => Number::count(times.up_to(READ_TIME_BOUNDS.len())),
        Cell::Sum => Number::Scaled(
            times.sum,
            Scale {
                multiply: 1,
                decimals: 9,
            },
        ),
    }
}
