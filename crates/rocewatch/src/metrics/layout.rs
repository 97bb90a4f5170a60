//! Which series there are: laid out anew whenever ports, sources or their counters change.

use super::naming;
use super::series::{Cell, Counts, Gathered, Now, Place, PortValue, SourceValue};
use super::text::{self, Format, Headers};
use crate::agent::{PortView, READ_TIME_BOUNDS, SourceState, World};
use crate::config::Metrics;
use catalog::{Direction, Family, Index, Origin, Signal, Status};
use model::{Column, SourceKind};
use signals::Histogram;
use std::ops::Range;

/// All series, family by family, with everything but their values written in advance.
pub(super) struct Layout {
    generation: Option<u64>,
    families: Vec<Block>,
    /// The prefixes of all series, one behind the other.
    prefixes: String,
    counts: Counts,
    gathered: Gathered,
}

struct Block {
    headers: Headers,
    series: Vec<Series>,
}

/// Narrow, since a scrape walks along all of them in cold caches.
struct Series {
    prefix: Range<u32>,
    place: Place,
}

impl Layout {
    /// No series, of no generation of an agent that started at this Unix time.
    pub(super) fn empty(started: f64) -> Self {
        Self {
            generation: None,
            families: Vec::new(),
            prefixes: String::new(),
            counts: Counts {
                started,
                shown: 0,
                left_out: 0,
            },
            gathered: Gathered::default(),
        }
    }

    /// The generation of the world that this is the layout of.
    pub(super) fn generation(&self) -> Option<u64> {
        self.generation
    }

    /// Lays out all that `world` has to show.
    pub(super) fn of(world: &World, config: &Metrics, started: f64) -> Self {
        let mut layout = Self {
            generation: Some(world.generation()),
            ..Self::empty(started)
        };
        for family in catalog::FAMILIES
            .iter()
            .filter(|family| family.status == Status::Live && config.shows(family))
        {
            let mut block = Builder {
                family,
                limit: config.max_series,
                labels: Vec::new(),
                layout: &mut layout,
                series: Vec::new(),
            };
            block.fill(world, config);
            let series = block.series;
            if !series.is_empty() {
                layout.families.push(Block {
                    headers: Headers::of(family),
                    series,
                });
            }
        }
        layout
    }

    /// Writes the values as they are now. A value that is absent leaves its series out; a family without a series
    /// leaves its header out.
    pub(super) fn encode(&mut self, world: &World, format: Format, out: &mut Vec<u8>) {
        let now = Now::of(world, self.counts, &mut self.gathered);
        for block in &self.families {
            let mut header = Some(block.headers.of_format(format));
            for series in &block.series {
                let Some(value) = now.value(series.place) else {
                    continue;
                };
                if let Some(header) = header.take() {
                    out.extend_from_slice(header.as_bytes());
                }
                let (start, end) = (series.prefix.start as usize, series.prefix.end as usize);
                out.extend_from_slice(&self.prefixes.as_bytes()[start..end]);
                value.write(out);
                out.push(b'\n');
            }
        }
    }
}

/// Where what a port has begins among what all ports have.
#[derive(Clone, Copy, Default)]
struct First {
    port: u32,
    source: u32,
    column: u32,
}

impl First {
    /// The same of the next port.
    fn behind(self, view: &PortView) -> Self {
        Self {
            port: self.port + 1,
            source: self.source + narrow(view.sources.len()),
            column: self.column + view.sources.keys().map(|kind| columns(view, *kind)).sum::<u32>(),
        }
    }

    /// Where a column of a source of this port is.
    fn column(self, view: &PortView, source: SourceKind, column: usize) -> Option<u32> {
        let before = view.sources.keys().take_while(|kind| **kind < source);
        let before: u32 = before.map(|kind| columns(view, *kind)).sum();
        view.sources
            .contains_key(&source)
            .then_some(self.column + before + narrow(column))
    }
}

fn columns(view: &PortView, source: SourceKind) -> u32 {
    view.signals.raw(source).map_or(0, |(_, row)| narrow(row.len()))
}

fn narrow(at: usize) -> u32 {
    u32::try_from(at).expect("no page is that long")
}

/// Collects the series of one family.
struct Builder<'a> {
    family: &'static Family,
    limit: u32,
    /// Values of labels, as far as they are known.
    labels: Vec<(&'static str, String)>,
    layout: &'a mut Layout,
    series: Vec<Series>,
}

impl Builder<'_> {
    fn fill(&mut self, world: &World, config: &Metrics) {
        match self.family.name {
            "build_info" => self.with(&[("version", env!("CARGO_PKG_VERSION"))], |b| {
                b.add(Place::One);
            }),
            "up_since_seconds" => self.add(Place::Started),
            "ring_rows" => self.add(Place::RingRows),
            "events" => self.fill_events(world, Place::EventsOpened),
            "event_active" => self.fill_events(world, Place::EventOpen),
            "doctor_finding" => self.fill_findings(world),
            "series" => self.add(Place::SeriesShown),
            "series_left_out" => self.add(Place::SeriesLeftOut),
            _ => {
                let mut first = First::default();
                for view in world.ports() {
                    self.labels = port_labels(view);
                    self.fill_port(first, view, config);
                    first = first.behind(view);
                }
            }
        }
    }

    fn fill_port(&mut self, first: First, view: &PortView, config: &Metrics) {
        use PortValue as V;
        let port = |value| Place::Port(first.port, value);
        match self.family.name {
            "port_info" => self.add(Place::One),
            "port_utilization_ratio" => self.per_direction(|b, d| b.add(port(V::Utilization(d)))),
            "sampled_utilization_ratio" => self.per_direction(|b, direction| {
                if let Some(histogram) = view.signals.utilization_histogram(direction) {
                    b.histogram(histogram, |cell| port(V::UtilizationHistogram(direction, cell)));
                }
            }),
            "pfc_enabled" if view.pfc_mask().is_some() => {
                self.per_priority(|b, p| b.add(port(V::PfcEnabled(p))));
            }
            "pfc_storm_active" => self.per_direction(|b, direction| {
                b.per_priority(|b, priority| {
                    let enabled = view.pfc_mask().is_some_and(|mask| mask & (1 << priority) != 0);
                    if enabled || view.has_storm(direction, priority) {
                        b.add(port(V::Storm(direction, priority)));
                    }
                });
            }),
            "pfc_pause_ratio" => self.per_paused(view, Signals::Duration, |b, d, p| {
                b.add(port(V::PauseRatio(d, p)));
            }),
            "pfc_pause_upper_bound_ratio" => {
                self.per_paused(view, Signals::XoffFrames, |b, d, p| {
                    b.add(port(V::PauseUpperBound(d, p)));
                });
            }
            "sampled_pause_ratio" => self.per_paused(view, Signals::Duration, |b, direction, priority| {
                if let Some(histogram) = view.signals.pause_histogram(direction, priority) {
                    b.histogram(histogram, |cell| {
                        port(V::PauseHistogram(direction, priority, cell))
                    });
                }
            }),
            "ecn_marked_ratio" => self.add(port(V::CeRatio)),
            "cnp_per_marked_packet" => self.add(port(V::CnpPerCe)),
            "cnp_ignored_ratio" => self.add(port(V::CnpIgnoredRatio)),
            "resets" => self.add(port(V::Resets)),
            "samples_implausible" => self.add(port(V::Implausible)),
            _ if self.family.origin == Origin::Raw => self.raw(first, view, config),
            name if name.starts_with("source_") || name.starts_with("samples") => {
                self.fill_sources(first, view);
            }
            _ => self.signals(first, view),
        }
    }

    /// One series for each kind of event that there was, of each port, direction and priority.
    fn fill_events(&mut self, world: &World, place: impl Fn(u32) -> Place) {
        for (at, tally) in (0..).zip(world.events().tallies()) {
            let subject = &tally.subject;
            let text = |value: Option<String>| value.unwrap_or_default();
            self.labels = vec![
                ("device", text(subject.device.clone())),
                ("port", text(subject.port.map(|port| port.to_string()))),
                ("netdev", text(subject.netdev.clone())),
                ("event", tally.kind.as_str().to_owned()),
                ("severity", tally.severity.to_owned()),
                ("direction", tally.direction.to_owned()),
                (
                    "priority",
                    text(tally.priority.map(|priority| priority.to_string())),
                ),
            ];
            self.add(place(at));
        }
    }

    /// One series for each check that fires on a port, or on the node.
    fn fill_findings(&mut self, world: &World) {
        // Of a port that has gone, or has another name now, nothing is known any more.
        let is_there = |named: &doctor::PortName| {
            world
                .ports()
                .any(|view| doctor::PortName::of(&view.port) == *named)
        };
        for finding in world.findings().distinct() {
            let port = finding.port.as_ref();
            if port.is_some_and(|port| !is_there(port)) {
                continue;
            }
            let text = |value: Option<String>| value.unwrap_or_default();
            self.labels = vec![
                ("device", text(port.map(|port| port.device.clone()))),
                ("port", text(port.map(|port| port.id.number.to_string()))),
                ("netdev", text(port.and_then(|port| port.netdev.clone()))),
                ("check", finding.check.id.to_owned()),
                ("severity", finding.severity().as_str().to_owned()),
            ];
            self.add(Place::One);
        }
    }

    /// The signals that feed the family.
    fn signals(&mut self, first: First, view: &PortView) {
        for (slot, known) in (0..).zip(view.signals.slots()) {
            let Some(labels) = naming::signal_labels(self.family, known.signal, known.index) else {
                continue;
            };
            let labels: Vec<_> = labels.iter().map(|(label, value)| (*label, &**value)).collect();
            let alone = match view.signals.origin(slot as usize) {
                Some((source, [column])) => first.column(view, source, *column),
                _ => None,
            };
            let place = match alone {
                Some(at) => Place::Column(at, known.scale),
                None => Place::Sum(first.port, slot),
            };
            self.with(&labels, |b| b.add(place));
        }
    }

    /// What a source reads under the driver's own names.
    fn raw(&mut self, first: First, view: &PortView, config: &Metrics) {
        let schema_of = |kind| view.sources.get(&kind).and_then(|source| source.schema());
        // Those of queue pairs are read only where they are asked for, and no other metric shows them.
        let of_queue_pairs = naming::raw_sources(self.family) == [SourceKind::QpCounters];
        let wanted = |column: &Column| {
            let meaning = column.meaning;
            of_queue_pairs
                || config.shows_raw(meaning.map(|meaning| is_exposed(meaning.signal(), meaning.index)))
        };
        for (kind, i, column) in naming::raw_columns(self.family, schema_of, wanted) {
            let Some(at) = view.sources.keys().position(|known| *known == kind) else {
                continue;
            };
            let labels = naming::raw_labels(kind, &column.name);
            let labels: Vec<_> = labels.iter().map(|(label, value)| (*label, &**value)).collect();
            self.with(&labels, |b| {
                b.add(Place::Source(
                    first.source + narrow(at),
                    SourceValue::Raw(narrow(i)),
                ));
            });
        }
    }

    /// What the agent tells of each source of the port.
    fn fill_sources(&mut self, first: First, view: &PortView) {
        use SourceValue as V;
        for (at, (kind, source)) in (0..).zip(&view.sources) {
            let place = |value| Place::Source(first.source + at, value);
            let read = source.schema().is_some();
            self.labels.retain(|(label, _)| *label != "source");
            self.labels.push(("source", kind.as_str().to_owned()));
            match self.family.name {
                "source_state" if source.state != SourceState::Opening => {
                    let reason = source.state.why().map_or("", |why| why.reason);
                    self.with(&[("state", source.state.as_str()), ("reason", reason)], |b| {
                        b.add(Place::One);
                    });
                }
                "source_stalled" => self.add(place(V::Stalled)),
                "source_frozen" if counts(*kind) && read => self.add(place(V::Frozen)),
                "source_full_counters" if counts(*kind) && read => self.add(place(V::Full)),
                "source_errors" => {
                    for (at, reason) in (0..).zip(source.errors.keys()) {
                        self.with(&[("reason", reason)], |b| b.add(place(V::Errors(at))));
                    }
                }
                "source_interval_seconds" if read => self.add(place(V::Interval)),
                "samples" if read => self.add(place(V::Samples)),
                "samples_missed" if read => self.add(place(V::Missed)),
                "source_read_seconds" if counts(*kind) && read => {
                    let bounds = READ_TIME_BOUNDS.map(|nanos| nanos as f64 / 1e9);
                    self.buckets(&bounds, |cell| place(V::ReadTime(cell)));
                }
                _ => {}
            }
        }
    }

    fn per_direction(&mut self, mut each: impl FnMut(&mut Self, Direction)) {
        for direction in [Direction::Rx, Direction::Tx] {
            self.with(&[("direction", direction.as_str())], |b| each(b, direction));
        }
    }

    fn per_priority(&mut self, mut each: impl FnMut(&mut Self, u8)) {
        for priority in 0..8 {
            self.with(&[("priority", &priority.to_string())], |b| each(b, priority));
        }
    }

    /// Directions and priorities for which the port has what the pause ratio, or its bound, is made of.
    fn per_paused(
        &mut self,
        view: &PortView,
        wanted: Signals,
        mut each: impl FnMut(&mut Self, Direction, u8),
    ) {
        self.per_direction(|b, direction| {
            let signal = wanted.of(direction);
            b.per_priority(|b, priority| {
                let index = Some(Index::Priority(priority));
                if view
                    .signals
                    .slots()
                    .iter()
                    .any(|slot| slot.signal == signal && slot.index == index)
                {
                    each(b, direction, priority);
                }
            });
        });
    }

    fn histogram(&mut self, histogram: &Histogram, place: impl Fn(Cell) -> Place) {
        self.buckets(histogram.bounds(), place);
    }

    fn buckets(&mut self, bounds: &[f64], place: impl Fn(Cell) -> Place) {
        for (at, bound) in (0..).zip(bounds) {
            self.with(&[("le", &bound.to_string())], |b| {
                b.add_named("_bucket", place(Cell::Bucket(at)));
            });
        }
        self.with(&[("le", "+Inf")], |b| {
            b.add_named("_bucket", place(Cell::Count));
        });
        self.add_named("_sum", place(Cell::Sum));
        self.add_named("_count", place(Cell::Count));
    }

    /// Sets labels for what `body` adds.
    fn with(&mut self, labels: &[(&'static str, &str)], body: impl FnOnce(&mut Self)) {
        let before = self.labels.len();
        self.labels
            .extend(labels.iter().map(|(label, value)| (*label, (*value).to_owned())));
        body(self);
        self.labels.truncate(before);
    }

    fn add(&mut self, place: Place) {
        self.add_named(text::suffix(self.family.kind), place);
    }

    fn add_named(&mut self, suffix: &str, place: Place) {
        let counts = &mut self.layout.counts;
        if counts.shown >= self.limit {
            counts.left_out += 1;
            return;
        }
        counts.shown += 1;
        let prefixes = &mut self.layout.prefixes;
        let start = narrow(prefixes.len());
        let value = |wanted: &str| {
            self.labels
                .iter()
                .find(|(label, _)| *label == wanted)
                .map(|(_, value)| value.as_str())
        };
        let in_order = self
            .family
            .labels
            .iter()
            .copied()
            .chain(["le"])
            .filter_map(|label| Some((label, value(label)?)));
        text::prefix(
            &format!("{}{}", text::PREFIX, self.family.name),
            suffix,
            in_order,
            prefixes,
        );
        self.series.push(Series {
            prefix: start..narrow(prefixes.len()),
            place,
        });
    }
}

/// What a pause ratio, or the upper bound of one, is made of.
#[derive(Clone, Copy)]
enum Signals {
    Duration,
    XoffFrames,
}

impl Signals {
    fn of(self, direction: Direction) -> Signal {
        match (self, direction) {
            (Self::Duration, Direction::Rx) => Signal::PfcRxPauseDuration,
            (Self::Duration, Direction::Tx) => Signal::PfcTxPauseDuration,
            (Self::XoffFrames, Direction::Rx) => Signal::PfcRxXoffFrames,
            (Self::XoffFrames, Direction::Tx) => Signal::PfcTxXoffFrames,
        }
    }
}

/// True for a source of counters, which the hardware keeps.
fn counts(kind: SourceKind) -> bool {
    use SourceKind as K;
    matches!(
        kind,
        K::Ethtool | K::HwCounters | K::DeviceCounters | K::PortCounters
    )
}

/// True if a family of signals has it, so that it need not go out as it is.
pub(crate) fn is_exposed(signal: Signal, index: Option<Index>) -> bool {
    catalog::FAMILIES
        .iter()
        .any(|family| family.takes(signal, index).is_some())
}

fn port_labels(view: &PortView) -> Vec<(&'static str, String)> {
    let port = &view.port;
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    vec![
        ("device", port.device.clone()),
        ("port", port.id.number.to_string()),
        ("netdev", text(port.netdev.as_deref())),
        ("driver", port.driver.clone()),
        ("firmware", text(port.firmware.as_deref())),
        ("board", text(port.board.as_deref())),
        ("pci", text(port.pci.as_ref().map(|pci| pci.address.as_str()))),
        (
            "numa_node",
            port.numa_node.map(|node| node.to_string()).unwrap_or_default(),
        ),
        ("link_layer", port.link_layer.as_str().to_owned()),
        ("rail", view.rail.map(|rail| rail.to_string()).unwrap_or_default()),
        ("gpu", text(port.gpu.as_ref().map(|gpu| gpu.address.as_str()))),
    ]
}
