//! What a series shows, and its value now.

use super::number::Number;
use crate::agent::{PortView, READ_TIME_BOUNDS, ReadTimes, SourceView, World};
use catalog::{Direction, Scale};
use model::{ABSENT, SourceKind};
use signals::Histogram;
use std::sync::atomic::Ordering::Relaxed;

/// Where the value of a series comes from. Narrow, since a scrape walks along all of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// One, as all information has it.
    One,
    /// When the agent started.
    Started,
    /// A signal of one column: its position in [`Now`].
    Column(u32, Scale),
    /// A signal of several columns: the port, and the slot in its signals.
    Sum(u32, u32),
    /// Something of a port.
    Port(u32, PortValue),
    /// Something of the source at this position of [`Now`].
    Source(u32, SourceValue),
    /// How often the events of a tally have opened.
    EventsOpened(u32),
    /// Whether one of them is open.
    EventOpen(u32),
    /// Rows in all rings.
    RingRows,
    /// How many series there are, and how many found no room.
    SeriesShown,
    SeriesLeftOut,
}

/// What the world holds now, in the order in which it lies in memory. A scrape finds the caches cold: whoever asks for one
/// series after the other, which are ordered by family, waits for memory at each.
pub(super) struct Now<'a> {
    world: &'a World,
    ports: Vec<&'a PortView>,
    sources: Vec<(&'a PortView, SourceKind, &'a SourceView)>,
    columns: Vec<Option<u64>>,
    layout: Counts,
}

/// What a layout tells of itself.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    /// When the agent started, as a Unix time.
    pub(super) started: f64,
    /// Series that there are.
    pub(super) shown: u32,
    /// Series that found no room.
    pub(super) left_out: u32,
}

impl<'a> Now<'a> {
    pub(super) fn of(world: &'a World, layout: Counts) -> Self {
        let ports: Vec<_> = world.ports().collect();
        let sources_of = |view: &&'a PortView| {
            let view = *view;
            view.sources
                .iter()
                .map(move |(kind, source)| (view, *kind, source))
        };
        let sources: Vec<_> = ports.iter().flat_map(sources_of).collect();
        let columns = sources
            .iter()
            .flat_map(|(view, kind, _)| view.signals.columns(*kind));
        let columns = columns.collect();
        Self {
            world,
            ports,
            sources,
            columns,
            layout,
        }
    }

    /// The value at a place of the layout of this generation of the world.
    pub(super) fn value(&self, place: Place) -> Option<Number> {
        let tally = |at: u32| self.world.events().tallies().get(at as usize);
        Some(match place {
            Place::One => Number::count(1),
            Place::Started => Number::Float(self.layout.started),
            Place::Column(at, scale) => Number::Scaled((*self.columns.get(at as usize)?)?, scale),
            Place::Sum(port, slot) => {
                let signals = &self.ports.get(port as usize)?.signals;
                let scale = signals.slots().get(slot as usize)?.scale;
                Number::Scaled(signals.value(slot as usize)?, scale)
            }
            Place::Port(at, value) => return value.of(self.ports.get(at as usize)?),
            Place::Source(at, value) => return value.of(*self.sources.get(at as usize)?),
            Place::EventsOpened(at) => Number::count(tally(at)?.opened),
            Place::EventOpen(at) => Number::count(tally(at)?.open.into()),
            Place::RingRows => {
                let rows = self.sources.iter().filter_map(|(.., source)| source.ring_rows());
                Number::count(rows.sum())
            }
            Place::SeriesShown => Number::count(self.layout.shown.into()),
            Place::SeriesLeftOut => Number::count(self.layout.left_out.into()),
        })
    }
}

/// A value of a port.
#[derive(Clone, Copy, Debug)]
pub(super) enum PortValue {
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
    Raw(u32),
    Stalled,
    Frozen,
    Full,
    Interval,
    Samples,
    Missed,
    /// The errors of the reason at this position.
    Errors(u32),
    ReadTime(Cell),
}

/// One line of a histogram.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    /// Observations up to the bound of this position.
    Bucket(u8),
    Sum,
    /// All observations, which is also what the bucket `+Inf` has.
    Count,
}

impl PortValue {
    fn of(self, view: &PortView) -> Option<Number> {
        let signals = &view.signals;
        let ratio = match self {
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
        Cell::Bucket(at) => Number::count(histogram.cumulative(at.into())),
        Cell::Sum => Number::Float(histogram.sum()),
        Cell::Count => Number::count(histogram.count()),
    }
}

impl SourceValue {
    fn of(self, (view, kind, source): (&PortView, SourceKind, &SourceView)) -> Option<Number> {
        let health = &source.health;
        Some(match self {
            Self::Raw(column) => {
                let value = *view.signals.raw(kind)?.1.get(column as usize)?;
                let shown = source.fresh && !source.frozen && value != ABSENT;
                return shown.then(|| Number::count(value));
            }
            Self::Stalled => Number::count(source.stalled.into()),
            Self::Frozen => Number::count(source.frozen.into()),
            Self::Full => Number::count(source.full.len() as u64),
            Self::Interval => match health.interval.load(Relaxed) {
                0 => return None,
                nanos => Number::nanoseconds(nanos),
            },
            Self::Samples => Number::count(health.samples.load(Relaxed)),
            Self::Missed => Number::count(health.late.load(Relaxed) + health.failed.load(Relaxed)),
            Self::Errors(at) => Number::count(*source.errors.values().nth(at as usize)?),
            Self::ReadTime(cell) => read_time(&source.read_times, cell),
        })
    }
}

fn read_time(times: &ReadTimes, cell: Cell) -> Number {
    match cell {
        Cell::Bucket(at) => Number::count(times.up_to(at.into())),
        Cell::Count => Number::count(times.up_to(READ_TIME_BOUNDS.len())),
        Cell::Sum => Number::nanoseconds(times.sum),
    }
}
