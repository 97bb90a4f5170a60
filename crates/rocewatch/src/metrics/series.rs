//! What a series shows, and its value now.

use super::number::Number;
use crate::agent::{Figures, PortView, READ_TIME_BOUNDS, ReadTimes, World};
use catalog::{Direction, Scale};
use model::{ABSENT, SourceKind};
use signals::Histogram;

/// Where the value of a series comes from. Narrow, since a scrape walks along all of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// One, as all information has it.
    One,
    /// When the agent started.
    Started,
    /// A signal of one column: its position in [`Gathered`].
    Column(u32, Scale),
    /// A signal of several columns: the port, and the slot in its signals.
    Sum(u32, u32),
    /// Something of a port.
    Port(u32, PortValue),
    /// Something of the source at this position of [`Gathered`].
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

/// What the world holds now.
pub(super) struct Now<'a> {
    world: &'a World,
    ports: Vec<&'a PortView>,
    gathered: &'a Gathered,
    layout: Counts,
}

/// What there is most of, gathered in the order in which it lies in memory. A scrape finds the caches cold: whoever asks for
/// one series after the other, which are ordered by family, waits for memory at each. Kept from scrape to scrape, since
/// memory that was just used is in the caches.
#[derive(Default)]
pub(super) struct Gathered {
    sources: Vec<Source>,
    columns: Vec<u64>,
}

/// A source of a port.
struct Source {
    /// The port's position.
    port: u32,
    kind: SourceKind,
    figures: Figures,
    stalled: bool,
    frozen: bool,
    full: usize,
}

impl Gathered {
    fn fill(&mut self, ports: &[&PortView]) {
        self.sources.clear();
        self.columns.clear();
        for (port, view) in (0..).zip(ports) {
            for (kind, source) in &view.sources {
                self.sources.push(Source {
                    port,
                    kind: *kind,
                    // Of one that is not read nothing of them is shown.
                    figures: source.schema().map_or_else(Figures::default, |_| source.figures),
                    stalled: source.stalled,
                    frozen: source.frozen,
                    full: source.full.len(),
                });
                self.columns.extend(view.signals.columns(*kind));
            }
        }
    }
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
    /// Fills `gathered` anew.
    pub(super) fn of(world: &'a World, layout: Counts, gathered: &'a mut Gathered) -> Self {
        let ports: Vec<_> = world.ports().collect();
        gathered.fill(&ports);
        Self {
            world,
            ports,
            gathered,
            layout,
        }
    }

    /// The value at a place of the layout of this generation of the world.
    pub(super) fn value(&self, place: Place) -> Option<Number> {
        let tally = |at: u32| self.world.events().tallies().get(at as usize);
        Some(match place {
            Place::One => Number::count(1),
            Place::Started => Number::Float(self.layout.started),
            Place::Column(at, scale) => {
                let value = *self.gathered.columns.get(at as usize)?;
                return (value != ABSENT).then_some(Number::Scaled(value, scale));
            }
            Place::Sum(port, slot) => {
                let signals = &self.ports.get(port as usize)?.signals;
                let scale = signals.slots().get(slot as usize)?.scale;
                Number::Scaled(signals.value(slot as usize)?, scale)
            }
            Place::Port(at, value) => return value.of(self.ports.get(at as usize)?),
            Place::Source(at, value) => {
                let source = self.gathered.sources.get(at as usize)?;
                return value.of(source, self.ports.get(source.port as usize)?);
            }
            Place::EventsOpened(at) => Number::count(tally(at)?.opened),
            Place::EventOpen(at) => Number::count(tally(at)?.open.into()),
            Place::RingRows => {
                let sources = self.gathered.sources.iter();
                let rows = sources.filter_map(|source| source.figures.ring_rows);
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
    fn of(self, source: &Source, port: &PortView) -> Option<Number> {
        let figures = &source.figures;
        let view = || port.sources.get(&source.kind);
        Some(match self {
            Self::Raw(column) => {
                let value = *port.signals.raw(source.kind)?.1.get(column as usize)?;
                let shown = view()?.fresh && !source.frozen && value != ABSENT;
                return shown.then(|| Number::count(value));
            }
            Self::Stalled => Number::count(source.stalled.into()),
            Self::Frozen => Number::count(source.frozen.into()),
            Self::Full => Number::count(source.full as u64),
            Self::Interval => match figures.interval {
                0 => return None,
                nanos => Number::nanoseconds(nanos),
            },
            Self::Samples => Number::count(figures.samples),
            Self::Missed => Number::count(figures.late + figures.failed),
            Self::Errors(at) => Number::count(*view()?.errors.values().nth(at as usize)?),
            Self::ReadTime(cell) => read_time(&figures.read_times, cell),
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
