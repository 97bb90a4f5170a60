//! The engine for one port: fed with every row of its tracks, asked for values at any time.

use crate::histogram::Histogram;
use crate::meter::{Growth, Meter};
use crate::meters::{Meters, Part, Wanted};
use crate::quantity::{Quantity, Sample};
use crate::ratio;
use crate::track::Track;
use catalog::{Direction, Index, Scale, Signal};
use model::{ABSENT, Schema, SourceKind};
use ring::Window;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The span over which rates and ratios are taken, in nanoseconds.
    pub window: u64,
}

/// One signal of the port, at one index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// What it is.
    pub signal: Signal,
    /// Of which priority, lane, …; `None` if it is the port's own.
    pub index: Option<Index>,
    /// The way to its base unit.
    pub scale: Scale,
    /// Where it is read.
    pub source: SourceKind,
    /// Its columns: `parts[first..last]` of the port.
    parts: (usize, usize),
}

/// A ratio over one sampling interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When the interval began, in nanoseconds.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// The ratio, 0..=1.
    pub ratio: f64,
}

/// What was noticed about the rows themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Counters that began anew.
    pub resets: u64,
    /// Samples that cannot be true, such as more bytes than the line carries; they enter no ratio.
    pub implausible: u64,
}

/// All signals of one port.
///
/// Which source serves a signal is decided once, by [`PortSignals::settle`], when it is known which sources the port
/// has: a counter that changed its source in flight would jump, and Prometheus would take the jump for traffic.
pub struct PortSignals {
    options: Options,
    tracks: [Option<Track>; SourceKind::ALL.len()],
    /// Those of the device before it was registered anew.
    former: [Option<Track>; SourceKind::ALL.len()],
    settled: bool,
    /// Which source serves a signal, at every index: which priorities have PFC changes, and with them what a source has.
    chosen: BTreeMap<Signal, SourceKind>,
    slots: Vec<Slot>,
    parts: Vec<usize>,
    meters: Meters,
    histograms: BTreeMap<Quantity, Histogram>,
    /// Of the link, in bits per second.
    speed: Option<f64>,
    /// Bit p is set if PFC is enabled on priority p.
    pfc_mask: Option<u64>,
    layouts: u64,
    quality: Quality,
}

impl PortSignals {
    /// An engine that knows nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            tracks: Default::default(),
            former: Default::default(),
            settled: false,
            chosen: BTreeMap::new(),
            slots: Vec::new(),
            parts: Vec::new(),
            meters: Meters::new(),
            histograms: BTreeMap::new(),
            speed: None,
            pfc_mask: None,
            layouts: 0,
            quality: Quality::default(),
        }
    }

    /// An engine for the same port after its device went and came back. It knows nothing of the new one, but what the old one's
    /// counters read last: one that then reads less has begun anew.
    #[must_use]
    pub fn again(self) -> Self {
        let mut former = self.tracks;
        for (track, before) in former.iter_mut().zip(self.former) {
            *track = track.take().or(before);
            track.iter_mut().for_each(Track::end);
        }
        Self {
            former,
            quality: self.quality,
            ..Self::new(self.options)
        }
    }

    /// A source has a new track. Counters with a name that its former track had carry on.
    pub fn open(&mut self, schema: Arc<Schema>) {
        let source = schema.source as usize;
        let former = self.tracks[source].take().or_else(|| self.former[source].take());
        self.tracks[source] = Some(Track::open(schema, former.as_ref()));
        self.lay_out();
    }

    /// A source can no longer be read: its values are absent until it has a new track.
    pub fn close(&mut self, source: SourceKind) {
        self.tracks[source as usize] = None;
        self.lay_out();
    }

    /// All sources that the port has are known: from now on there are values.
    pub fn settle(&mut self) {
        self.settled = true;
        self.lay_out();
    }

    /// Says whether the newest row of a source is recent enough to be shown.
    pub fn set_fresh(&mut self, source: SourceKind, fresh: bool) {
        let Some(track) = &mut self.tracks[source as usize] else {
            return;
        };
        track.fresh = fresh;
        if !fresh {
            // What comes after a long gap says nothing about the last window.
            self.meters.of(source).for_each(|(.., meter)| meter.clear());
        }
    }

    /// Takes in a row. Rows of a source come in order.
    pub fn row(&mut self, source: SourceKind, window: Window, values: &[u64]) {
        let packets = self.packets_beside(source);
        let Some(track) = &mut self.tracks[source as usize] else {
            return;
        };
        self.quality.resets += track.row(window, values, packets);
        match source {
            SourceKind::Settings => self.take_speed(),
            SourceKind::Dcb => self.take_pfc_mask(),
            _ => {}
        }
        let (Some(track), speed) = (&self.tracks[source as usize], self.speed) else {
            return;
        };
        for (quantity, parts, meter) in self.meters.of(source) {
            if parts.iter().any(|part| track.was_reset(part.column)) {
                meter.clear();
            }
            let Some(amount) = amount(track, parts) else {
                if track.is_frozen() {
                    meter.clear();
                }
                continue;
            };
            let Some(step) = meter.push(window, amount) else {
                continue;
            };
            match quantity.sample(step, speed) {
                Sample::Ratio(ratio) => self
                    .histograms
                    .get_mut(&quantity)
                    .into_iter()
                    .for_each(|h| h.observe(ratio)),
                Sample::Implausible => {
                    self.quality.implausible += 1;
                    meter.clear();
                }
                Sample::None => {}
            }
        }
    }

    /// Changes whenever [`PortSignals::slots`], or what else there is a value of, may have changed.
    #[must_use]
    pub fn layouts(&self) -> u64 {
        self.layouts
    }

    /// Every signal that the port has, ordered by signal and index.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The value of a slot now, in the driver's unit: a counter's total, or what a gauge reads.
    #[must_use]
    pub fn value(&self, slot: usize) -> Option<u64> {
        let slot = self.slots.get(slot)?;
        let track = self.tracks[slot.source as usize]
            .as_ref()
            .filter(|track| track.fresh)?;
        let parts = &self.parts[slot.parts.0..slot.parts.1];
        parts
            .iter()
            .try_fold(0u64, |sum, column| Some(sum.wrapping_add(track.value(*column)?)))
    }

    /// The values of all columns of a source now, as [`PortSignals::value`] has them of a slot of one column; [`ABSENT`]
    /// where there is none.
    pub fn columns(&self, source: SourceKind) -> impl Iterator<Item = u64> {
        let track = self.tracks[source as usize].as_ref();
        let (values, fresh) = track.map_or((&[][..], false), |track| (track.values(), track.fresh));
        values
            .iter()
            .map(move |value| if fresh { *value } else { ABSENT })
    }

    /// When the value of a slot was read, in nanoseconds of the rows' clock; `None` where it has none.
    #[must_use]
    pub fn read_at(&self, slot: usize) -> Option<u64> {
        self.value(slot)?;
        let slot = &self.slots[slot];
        let track = self.tracks[slot.source as usize].as_ref()?;
        self.parts.get(slot.parts.0).map(|column| track.read_at(*column))
    }

    /// Where the value of a slot comes from: a source, and the columns of it that are added up.
    #[must_use]
    pub fn origin(&self, slot: usize) -> Option<(SourceKind, &[usize])> {
        let slot = self.slots.get(slot)?;
        Some((slot.source, &self.parts[slot.parts.0..slot.parts.1]))
    }

    /// The newest row of a source as it was read.
    #[must_use]
    pub fn raw(&self, source: SourceKind) -> Option<(&Schema, &[u64])> {
        self.tracks[source as usize]
            .as_ref()
            .map(|track| (&*track.schema, track.raw()))
    }

    /// What was noticed about the rows themselves.
    #[must_use]
    pub fn quality(&self) -> Quality {
        self.quality
    }

    /// True if a source answers, but with values that no longer are those of the hardware. They are left out.
    #[must_use]
    pub fn is_frozen(&self, source: SourceKind) -> bool {
        self.tracks[source as usize]
            .as_ref()
            .is_some_and(Track::is_frozen)
    }

    /// The counters of a source that stand at the end of their width and count no more; they have no value.
    pub fn full(&self, source: SourceKind) -> impl Iterator<Item = &str> {
        self.tracks[source as usize].iter().flat_map(Track::full)
    }

    /// Packets that the port had by the word of all but the firmware behind `source`.
    fn packets_beside(&self, source: SourceKind) -> Option<u64> {
        let all = self.tracks.iter().flatten();
        all.filter_map(|track| track.packets(track.schema.source == source))
            .reduce(u64::wrapping_add)
    }

    /// Share of the line in use over the last window, 0..=1.
    #[must_use]
    pub fn utilization(&self, direction: Direction) -> Option<f64> {
        ratio::utilization(self.rate(Quantity::wire(direction))?, self.speed?)
    }

    /// Share of the last window that a priority was paused, 0..=1. Received pause stops this node.
    #[must_use]
    pub fn pause_ratio(&self, direction: Direction, priority: u8) -> Option<f64> {
        ratio::pause(self.rate(Quantity::pause(direction, priority))?)
    }

    /// The most that a priority can have been paused, where only XOFF frames are counted.
    #[must_use]
    pub fn pause_upper_bound(&self, direction: Direction, priority: u8) -> Option<f64> {
        ratio::pause_upper_bound(self.rate(Quantity::xoff(direction, priority))?, self.speed?)
    }

    /// Share of the received RoCE packets that were CE-marked. `None` while too few came to tell.
    #[must_use]
    pub fn ce_ratio(&self) -> Option<f64> {
        let packets = self.growth(Quantity::Count(Signal::PacketsRxRdma, None))?;
        if packets.amount < ratio::LEAST_PACKETS {
            return None;
        }
        ratio::share(self.per_second(Signal::EcnRxCe, None)?, packets.per_second())
    }

    /// CNPs sent per CE-marked packet. May exceed 1 for a moment; `None` without marks.
    #[must_use]
    pub fn cnp_per_ce(&self) -> Option<f64> {
        let marked = self.per_second(Signal::EcnRxCe, None)?;
        (marked > 0.0).then_some(self.per_second(Signal::CnpTx, None)? / marked)
    }

    /// Share of the received CNPs that this node ignored. `None` without CNPs.
    #[must_use]
    pub fn cnp_ignored_ratio(&self) -> Option<f64> {
        let ignored = self.per_second(Signal::CnpRxIgnored, None)?;
        ratio::share(ignored, ignored + self.per_second(Signal::CnpRxHandled, None)?)
    }

    /// How fast a signal grew over the last window, in the driver's unit a second. `None` of a signal that is not
    /// followed or that the port does not have.
    #[must_use]
    pub fn per_second(&self, signal: Signal, index: Option<Index>) -> Option<f64> {
        self.rate(Quantity::Count(signal, index))
    }

    /// Share of the newest sampling interval that a priority was paused.
    #[must_use]
    pub fn pause_step(&self, direction: Direction, priority: u8) -> Option<Step> {
        self.step(Quantity::pause(direction, priority), ratio::pause)
    }

    /// The most that a priority can have been paused in the newest sampling interval, where only XOFF frames are counted.
    #[must_use]
    pub fn pause_bound_step(&self, direction: Direction, priority: u8) -> Option<Step> {
        let speed = self.speed?;
        self.step(Quantity::xoff(direction, priority), |rate| {
            ratio::pause_upper_bound(rate, speed)
        })
    }

    /// Share of the line in use in the newest sampling interval.
    #[must_use]
    pub fn utilization_step(&self, direction: Direction) -> Option<Step> {
        let speed = self.speed?;
        self.step(Quantity::wire(direction), |rate| ratio::utilization(rate, speed))
    }

    /// What a signal reads now, in the driver's unit: a counter's total, or a gauge.
    #[must_use]
    pub fn reading(&self, signal: Signal, index: Option<Index>) -> Option<u64> {
        self.value(self.find(signal, index)?)
    }

    /// Speed of the link, in bits per second.
    #[must_use]
    pub fn speed(&self) -> Option<f64> {
        self.speed
    }

    /// The priorities with PFC, a bit each.
    #[must_use]
    pub fn pfc_mask(&self) -> Option<u64> {
        self.pfc_mask
    }

    /// Utilization of each sampling interval.
    #[must_use]
    pub fn utilization_histogram(&self, direction: Direction) -> Option<&Histogram> {
        self.histograms.get(&Quantity::wire(direction))
    }

    /// Pause ratio of each sampling interval, of a priority with PFC enabled.
    #[must_use]
    pub fn pause_histogram(&self, direction: Direction, priority: u8) -> Option<&Histogram> {
        self.histograms.get(&Quantity::pause(direction, priority))
    }

    fn meter(&self, quantity: Quantity) -> Option<&Meter> {
        let (source, meter) = self.meters.get(quantity)?;
        self.tracks[source as usize]
            .as_ref()
            .filter(|track| track.fresh)?;
        Some(meter)
    }

    fn growth(&self, quantity: Quantity) -> Option<Growth> {
        self.meter(quantity)?.growth()
    }

    fn step(&self, quantity: Quantity, ratio: impl Fn(f64) -> Option<f64>) -> Option<Step> {
        let (began, growth) = self.meter(quantity)?.step()?;
        Some(Step {
            began,
            ended: began + growth.nanoseconds,
            ratio: ratio(growth.per_second())?,
        })
    }

    fn rate(&self, quantity: Quantity) -> Option<f64> {
        self.growth(quantity).map(Growth::per_second)
    }

    /// Follows the link's speed. A rate that spans a change of it would be of neither speed.
    fn take_speed(&mut self) {
        let speed = self.find(Signal::LinkSpeed, None).and_then(|slot| {
            let value = self.value(slot)? as f64;
            Some(8.0 * self.slots[slot].scale.apply(value))
        });
        if speed != self.speed {
            self.speed = speed;
            for quantity in [Quantity::WireRx, Quantity::WireTx] {
                self.meters.clear(quantity);
            }
        }
    }

    /// Follows which priorities have PFC: only those have a pause ratio.
    fn take_pfc_mask(&mut self) {
        let mask = self
            .find(Signal::ConfigPfcEnabled, None)
            .and_then(|slot| self.value(slot));
        if mask != self.pfc_mask {
            self.lay_out();
        }
    }

    fn find(&self, signal: Signal, index: Option<Index>) -> Option<usize> {
        self.slots
            .binary_search_by(|slot| (slot.signal, slot.index).cmp(&(signal, index)))
            .ok()
    }

    /// Finds anew which columns serve which signal, and what can be derived from them.
    fn lay_out(&mut self) {
        self.layouts += 1;
        self.slots.clear();
        self.parts.clear();
        if !self.settled {
            return;
        }
        let candidates = self.candidates();
        self.choose(&candidates);
        for ((signal, index), mut found) in candidates {
            let source = self.chosen[&signal];
            found.retain(|candidate| candidate.source == source);
            let Some(best) = found.iter().min_by_key(|candidate| candidate.rank) else {
                continue;
            };
            let first = self.parts.len();
            let of_best = found.iter().filter(|candidate| candidate.rank == best.rank);
            let wanted = if best.summed { usize::MAX } else { 1 };
            self.parts
                .extend(of_best.map(|candidate| candidate.column).take(wanted));
            self.slots.push(Slot {
                signal,
                index,
                scale: best.scale,
                source,
                parts: (first, self.parts.len()),
            });
        }
        self.pfc_mask = self
            .find(Signal::ConfigPfcEnabled, None)
            .and_then(|slot| self.value(slot));
        self.lay_out_meters();
        self.take_speed();
    }

    /// Gives each signal that has no source yet the one with the best rank at any index.
    fn choose(&mut self, candidates: &BTreeMap<(Signal, Option<Index>), Vec<Candidate>>) {
        let mut best: BTreeMap<Signal, (u8, SourceKind)> = BTreeMap::new();
        for ((signal, _), found) in candidates {
            for candidate in found {
                let this = (candidate.rank, candidate.source);
                let best = best.entry(*signal).or_insert(this);
                *best = this.min(*best);
            }
        }
        for (signal, (_, source)) in best {
            self.chosen.entry(signal).or_insert(source);
        }
    }

    fn candidates(&self) -> BTreeMap<(Signal, Option<Index>), Vec<Candidate>> {
        let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for track in self.tracks.iter().flatten() {
            for (at, column) in track.schema.columns.iter().enumerate() {
                let Some(meaning) = column.meaning else { continue };
                let entry = meaning.entry;
                found
                    .entry((entry.signal, meaning.index))
                    .or_default()
                    .push(Candidate {
                        source: track.schema.source,
                        column: at,
                        rank: entry.rank,
                        summed: entry.summed,
                        scale: entry.unit.base().1,
                    });
            }
        }
        found
    }

    fn lay_out_meters(&mut self) {
        let mut meters = std::mem::replace(&mut self.meters, Meters::new());
        meters.follow(Quantity::all().filter_map(|quantity| self.wanted(quantity)));
        self.meters = meters;
        for quantity in Quantity::all().filter(|quantity| self.meters.get(*quantity).is_some()) {
            if let Some(bounds) = quantity.bounds() {
                let histograms = self.histograms.entry(quantity);
                histograms.or_insert_with(|| Histogram::new(bounds));
            }
        }
    }

    fn wanted(&self, quantity: Quantity) -> Option<Wanted> {
        let (source, parts) = self.parts_of(quantity)?;
        let track = self.tracks[source as usize].as_ref();
        let refresh = track.map_or(0, |track| track.refresh);
        Some(Wanted {
            quantity,
            source,
            parts,
            meter: Meter::new(self.options.window, refresh),
        })
    }

    /// The columns, all of one track, that make up a quantity.
    fn parts_of(&self, quantity: Quantity) -> Option<(SourceKind, Vec<Part>)> {
        if let Quantity::PauseRx(priority) | Quantity::PauseTx(priority) = quantity {
            // Where PFC is off the counters of some drivers exist all the same.
            if self.pfc_mask.is_some_and(|mask| mask & (1 << priority) == 0) {
                return None;
            }
        }
        let mut source = None;
        let mut parts = Vec::new();
        for (signal, index, weight) in quantity.signals() {
            let slot = self.slots[self.find(signal, index)?];
            if *source.get_or_insert(slot.source) != slot.source {
                return None;
            }
            parts.extend(self.parts[slot.parts.0..slot.parts.1].iter().map(|column| Part {
                column: *column,
                weight,
            }));
        }
        Some((source?, parts))
    }
}

struct Candidate {
    source: SourceKind,
    column: usize,
    rank: u8,
    summed: bool,
    scale: Scale,
}

/// The weighted sum of the columns; `None` if one of them is absent.
fn amount(track: &Track, parts: &[Part]) -> Option<u64> {
    parts.iter().try_fold(0u64, |sum, part| {
        let value = track.value(part.column)?;
        Some(sum.wrapping_add(value.wrapping_mul(part.weight)))
    })
}
