//! The metric families as they were: the archive's rows on the way that live rows take to a scrape.
//!
//! The engine is the scrape's own, [`PortSignals`], so that source, sum, wrap and unit are decided once: what a scrape said
//! at 03:12 and what the archive says of 03:12 is one number under one name. Each series has an engine of its own that is
//! given its columns and no others. So a source that froze is shown as it was read: to tell that it was frozen takes all
//! columns of all sources, for minutes before the time asked for.

use super::Span;
use crate::metrics::Number;
use crate::metrics::naming::{self, Label};
use archive::{Archive, Damage, Epoch, Query, Rows, Track};
use catalog::{Family, Kind, Status};
use model::{ABSENT, PortId, Schema, SourceKind};
use signals::{Options, PortSignals, Slot};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

const MILLISECOND: i64 = 1_000_000;
/// Milliseconds after which a live value is no longer shown, unless its source is read less often (`agent/source.rs`).
const STALE: i64 = 5_000;
/// What Prometheus takes for the end of a series: `StaleNaN` of its `model/value`.
const ENDED: u64 = 0x7ff0_0000_0000_0002;

/// The labels of a series by name, `__name__` first. As in Prometheus, one without a value is left out.
pub(crate) type Labels = Vec<(Cow<'static, str>, Cow<'static, str>)>;

/// A value at a time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) time: i64,
    pub(crate) value: f64,
}

/// Who is told the samples.
pub(crate) trait Listener {
    /// The next sample of the series that stands here in [`Selection::series`]. The times of a series only grow.
    fn sample(&mut self, series: usize, sample: Sample) -> ControlFlow<()>;

    /// Asked now and then whether to go on.
    fn go_on(&mut self) -> ControlFlow<()>;
}

/// Series that are to be looked up.
pub(crate) struct Selection {
    /// What they are, in the order of Prometheus.
    pub(crate) series: Vec<Labels>,
    /// Oldest port first.
    groups: Vec<Group>,
}

/// Series that are read together: of one source of one port.
struct Group {
    identity: Identity,
    source: SourceKind,
    /// What they say depends on what went before, since the agent started.
    remembers: bool,
    engines: Vec<Counters>,
}

/// A port under one name, with one driver. A change of either makes other series.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    port: PortId,
    device: String,
    netdev: Option<String>,
    driver: String,
}

/// Counters that one engine is given.
struct Counters {
    schema: Arc<Schema>,
    /// What is asked of it: which series that is, and its value.
    series: Vec<(usize, Value)>,
}

#[derive(Clone, Copy)]
enum Value {
    Signal(Slot),
    /// The counter in this column, as it was read.
    Raw(usize),
}

/// A series that a port has.
struct Candidate {
    labels: Labels,
    source: SourceKind,
    value: Value,
    columns: Vec<usize>,
}

impl Selection {
    /// All series of the archive that are wanted. Each has the labels `more` beside its own.
    pub(crate) fn of(archive: &Archive, more: &Labels, wanted: impl Fn(&Labels) -> bool) -> Self {
        let mut found = Vec::new();
        for (identity, schemas) in ports(archive) {
            let candidates = candidates(&identity, &schemas, more).into_iter();
            let wanted: Vec<_> = candidates.filter(|candidate| wanted(&candidate.labels)).collect();
            found.push((identity, schemas, wanted));
        }
        let all = found.iter().flat_map(|(_, _, candidates)| candidates);
        let series: BTreeSet<Labels> = all.map(|candidate| candidate.labels.clone()).collect();
        let series: Vec<Labels> = series.into_iter().collect();
        let groups = found
            .into_iter()
            .flat_map(|(identity, schemas, candidates)| groups(&identity, &schemas, candidates, &series));
        Self {
            groups: groups.collect(),
            series,
        }
    }

    /// Plays what happened in `span` to the listener. Gives what could not be read.
    pub(crate) fn play(&self, archive: &Archive, span: Span, listener: &mut impl Listener) -> Vec<Damage> {
        let mut damages = Vec::new();
        let mut courses = vec![Course::default(); self.series.len()];
        for group in &self.groups {
            let mut engines: Vec<_> = group.engines.iter().map(Engine::new).collect();
            let columns = group.columns();
            let query = Query {
                port: &group.identity.port,
                source: group.source,
                columns: &columns,
                from: if group.remembers { i64::MIN } else { span.from },
                to: span.to,
            };
            let mut flow = ControlFlow::Continue(());
            damages.extend(archive.visit(&query, |rows| {
                if group.identity.is_of(&rows.track) {
                    flow = show(&rows, &mut engines, &mut courses, span, listener);
                }
                flow
            }));
            if flow.is_break() {
                break;
            }
        }
        damages
    }
}

fn show(
    rows: &Rows,
    engines: &mut [Engine<'_>],
    courses: &mut [Course],
    span: Span,
    listener: &mut impl Listener,
) -> ControlFlow<()> {
    listener.go_on()?;
    let span = (span.from.div_euclid(MILLISECOND), span.to.div_euclid(MILLISECOND));
    for engine in engines {
        engine.look_at(rows);
        for (at, time) in rows.times.iter().enumerate() {
            engine.row(rows, at);
            for (series, value) in &engine.counters.series {
                let value = engine.value(*value);
                let samples = courses[*series].next(time.wall.div_euclid(MILLISECOND), value);
                for sample in samples.into_iter().flatten() {
                    if (span.0..=span.1).contains(&sample.time) {
                        listener.sample(*series, sample)?;
                    }
                }
            }
        }
    }
    ControlFlow::Continue(())
}

/// Every port of the archive and all counters that it ever had, oldest first.
fn ports(archive: &Archive) -> Vec<(Identity, BTreeMap<SourceKind, Arc<Schema>>)> {
    type Names = BTreeMap<SourceKind, BTreeSet<Arc<str>>>;
    let mut found: BTreeMap<Identity, (i64, Names)> = BTreeMap::new();
    for span in archive.tracks() {
        let track = &span.track;
        let known = found
            .entry(Identity::of(track))
            .or_insert((span.first, Names::new()));
        known.0 = known.0.min(span.first);
        let names = track.columns.iter().map(|column| Arc::clone(&column.name));
        known.1.entry(track.source).or_default().extend(names);
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, (first, _))| *first);
    let with_schemas = found.into_iter().map(|(identity, (_, sources))| {
        let schemas = sources
            .into_iter()
            .map(|(source, names)| (source, Arc::new(identity.schema(source, names))));
        let schemas = schemas.collect();
        (identity, schemas)
    });
    with_schemas.collect()
}

/// Every series that a port with these counters has.
fn candidates(
    identity: &Identity,
    schemas: &BTreeMap<SourceKind, Arc<Schema>>,
    more: &Labels,
) -> Vec<Candidate> {
    let signals = settled(schemas.values());
    let mut found = Vec::new();
    for family in catalog::FAMILIES
        .iter()
        .filter(|family| family.status == Status::Live)
    {
        for (at, slot) in signals.slots().iter().enumerate() {
            let labels = naming::signal_labels(family, slot.signal, slot.index);
            if let (Some(labels), Some((source, columns))) = (labels, signals.origin(at)) {
                found.push(Candidate {
                    labels: identity.labels(family, labels, more),
                    source,
                    value: Value::Signal(*slot),
                    columns: columns.to_vec(),
                });
            }
        }
        let schema_of = |source| schemas.get(&source).map(|schema| &**schema);
        for (source, at, column) in naming::raw_columns(family, schema_of, |_| true) {
            let labels = naming::raw_labels(source, &column.name);
            found.push(Candidate {
                labels: identity.labels(family, labels, more),
                source,
                value: Value::Raw(at),
                columns: vec![at],
            });
        }
    }
    found
}

fn settled<'a>(schemas: impl IntoIterator<Item = &'a Arc<Schema>>) -> PortSignals {
    // No rate is asked for.
    let mut signals = PortSignals::new(Options {
        window: 1_000_000_000,
    });
    for schema in schemas {
        signals.open(Arc::clone(schema));
    }
    signals.settle();
    signals
}

/// The candidates of one port as they are read.
fn groups(
    identity: &Identity,
    schemas: &BTreeMap<SourceKind, Arc<Schema>>,
    candidates: Vec<Candidate>,
    series: &[Labels],
) -> Vec<Group> {
    let mut found: BTreeMap<(SourceKind, bool), Vec<Counters>> = BTreeMap::new();
    for candidate in candidates {
        let Ok(at) = series.binary_search(&candidate.labels) else {
            continue;
        };
        let all = &schemas[&candidate.source];
        let engines = found
            .entry((candidate.source, candidate.remembers(all)))
            .or_default();
        let asked = (at, candidate.value);
        if !candidate.needs_all(all) {
            let schema = candidate.schema(identity, all);
            engines.push(Counters {
                schema,
                series: vec![asked],
            });
        } else if let Some(known) = engines.iter_mut().find(|known| Arc::ptr_eq(&known.schema, all)) {
            known.series.push(asked);
        } else {
            engines.push(Counters {
                schema: Arc::clone(all),
                series: vec![asked],
            });
        }
    }
    let groups = found.into_iter().map(|((source, remembers), engines)| Group {
        identity: identity.clone(),
        source,
        remembers,
        engines,
    });
    groups.collect()
}

impl Identity {
    fn of(track: &Track) -> Self {
        Self {
            port: track.port.clone(),
            device: track.device.clone(),
            netdev: track.netdev.clone(),
            driver: track.driver.clone(),
        }
    }

    fn is_of(&self, track: &Track) -> bool {
        self.port == track.port
            && self.device == track.device
            && self.netdev == track.netdev
            && self.driver == track.driver
    }

    fn schema(&self, source: SourceKind, names: impl IntoIterator<Item = Arc<str>>) -> Schema {
        Schema::new(self.port.clone(), &self.driver, source, names)
    }

    fn labels(&self, family: &Family, own: Vec<Label>, more: &Labels) -> Labels {
        let mut labels = vec![
            ("__name__", Cow::Owned(family.exposed_name())),
            ("device", Cow::Owned(self.device.clone())),
            ("port", Cow::Owned(self.port.number.to_string())),
            ("netdev", Cow::Owned(self.netdev.clone().unwrap_or_default())),
        ];
        labels.extend(own);
        let labels = labels
            .into_iter()
            .map(|(name, value)| (Cow::Borrowed(name), value));
        let mut labels: Labels = labels.chain(more.iter().cloned()).collect();
        labels.retain(|(_, value)| !value.is_empty());
        labels.sort_unstable();
        labels
    }
}

impl Candidate {
    /// True if what it says depends on more than the newest row: it counts on where hardware wraps, and where one of its
    /// parts begins anew.
    fn remembers(&self, schema: &Schema) -> bool {
        matches!(self.value, Value::Signal(_)) && (self.columns.len() > 1 || self.wraps(schema))
    }

    fn wraps(&self, schema: &Schema) -> bool {
        self.columns.iter().any(|column| {
            let entry = schema.columns[*column].meaning.map(|meaning| meaning.entry);
            entry.is_some_and(|entry| {
                let width = entry.width;
                entry.kind == Kind::Counter && width.bits < 64 && !width.extended && !width.saturates
            })
        })
    }

    /// True if its engine takes all counters of the source: whether one that fell has wrapped is told by the others. What
    /// is shown as it was read asks any engine.
    fn needs_all(&self, schema: &Schema) -> bool {
        matches!(self.value, Value::Raw(_)) || self.wraps(schema)
    }

    /// Its counters alone.
    fn schema(&self, identity: &Identity, all: &Schema) -> Arc<Schema> {
        let names = self
            .columns
            .iter()
            .map(|column| Arc::clone(&all.columns[*column].name));
        Arc::new(identity.schema(self.source, names))
    }
}

impl Group {
    /// Names of all counters that are read.
    fn columns(&self) -> Vec<&str> {
        let columns = self.engines.iter().flat_map(Counters::read);
        let names: BTreeSet<&str> = columns.collect();
        names.into_iter().collect()
    }
}

impl Counters {
    /// Names of the counters that are read: what is shown as it was read needs no others.
    fn read(&self) -> impl Iterator<Item = &str> {
        let raw = self
            .series
            .iter()
            .all(|(_, value)| matches!(value, Value::Raw(_)));
        let shown = move |at: usize| {
            let is_it = |(_, value): &(usize, Value)| matches!(value, Value::Raw(column) if *column == at);
            !raw || self.series.iter().any(is_it)
        };
        let columns = self.schema.columns.iter().enumerate();
        columns
            .filter(move |(at, _)| shown(*at))
            .map(|(_, column)| &*column.name)
    }
}

/// What makes values of rows.
struct Engine<'a> {
    counters: &'a Counters,
    /// Of one run of the agent, as the live one.
    signals: PortSignals,
    epoch: Option<Epoch>,
    /// Where each counter stands among the columns of the present rows.
    places: Vec<Option<usize>>,
    row: Vec<u64>,
}

impl<'a> Engine<'a> {
    fn new(counters: &'a Counters) -> Self {
        Self {
            counters,
            signals: settled([&counters.schema]),
            epoch: None,
            places: Vec::new(),
            row: Vec::new(),
        }
    }

    /// Rows that [`Engine::row`] is going to take.
    fn look_at(&mut self, rows: &Rows) {
        if self.epoch.is_some_and(|epoch| epoch != rows.epoch) {
            self.signals = settled([&self.counters.schema]);
        }
        self.epoch = Some(rows.epoch);
        let place = |name: &str| {
            let is_it = |values: &archive::Values| *rows.track.columns[values.column].name == *name;
            rows.columns.iter().position(is_it)
        };
        let columns = self.counters.schema.columns.iter();
        self.places = columns.map(|column| place(&column.name)).collect();
    }

    /// Takes in a row.
    fn row(&mut self, rows: &Rows, at: usize) {
        self.row.clear();
        let cells = self
            .places
            .iter()
            .map(|place| place.map_or(ABSENT, |place| rows.columns[place].values[at]));
        self.row.extend(cells);
        self.signals
            .row(self.counters.schema.source, rows.times[at].window, &self.row);
    }

    /// A value after the last row.
    fn value(&self, value: Value) -> Option<f64> {
        let number = match value {
            Value::Signal(slot) => {
                let read = self.signals.reading(slot.signal, slot.index)?;
                Number::Scaled(read, slot.scale)
            }
            Value::Raw(column) => {
                let read = *self.signals.raw(self.counters.schema.source)?.1.get(column)?;
                Number::count(Some(read).filter(|read| *read != ABSENT)?)
            }
        };
        Some(number.nearest())
    }
}

/// How far a series has come.
#[derive(Clone, Default)]
struct Course {
    last: Option<i64>,
    /// Milliseconds between the last two rows.
    interval: Option<i64>,
    /// It had a value in the last row.
    shown: bool,
}

impl Course {
    /// What there is to say for a row: that the series ended, and its value. Nothing where the clock was set back.
    fn next(&mut self, time: i64, value: Option<f64>) -> [Option<Sample>; 2] {
        let gap = self.last.map(|last| time - last);
        if gap.is_some_and(|gap| gap <= 0) {
            return [None, None];
        }
        let limit = self.interval.map(|interval| STALE.max(3 * interval));
        let ended = match (self.last, gap, limit) {
            (Some(last), Some(gap), Some(limit)) if gap > limit => Some(last + limit),
            _ => value.is_none().then_some(time),
        };
        let ended = ended.filter(|_| self.shown).map(|time| Sample {
            time,
            value: f64::from_bits(ENDED),
        });
        self.last = Some(time);
        self.interval = gap.or(self.interval);
        self.shown = value.is_some();
        [ended, value.map(|value| Sample { time, value })]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(rows: &[(i64, Option<f64>)]) -> Vec<(i64, Option<f64>)> {
        let mut course = Course::default();
        let samples = rows.iter().flat_map(|(time, value)| course.next(*time, *value));
        let shown = samples.flatten().map(|sample| {
            let ended = sample.value.to_bits() == ENDED;
            (sample.time, (!ended).then_some(sample.value))
        });
        shown.collect()
    }

    #[test]
    fn a_series_ends_where_its_value_is_absent_and_where_rows_are_missing() {
        let rows = [
            (1_000, Some(1.0)),
            (2_000, Some(2.0)),
            (3_000, None),
            (4_000, None),
            (5_000, Some(3.0)),
            (6_000, Some(3.0)),
            (60_000, Some(4.0)),
        ];
        let right = [
            (1_000, Some(1.0)),
            (2_000, Some(2.0)),
            (3_000, None),
            (5_000, Some(3.0)),
            (6_000, Some(3.0)),
            (11_000, None),
            (60_000, Some(4.0)),
        ];
        assert_eq!(played(&rows), right);
    }

    #[test]
    fn a_source_that_is_read_once_a_minute_goes_on() {
        let rows = [(0, Some(1.0)), (60_000, Some(2.0)), (120_000, Some(3.0))];
        assert_eq!(played(&rows), rows);
    }

    #[test]
    fn a_time_that_comes_twice_counts_once() {
        let rows = [
            (2_000, Some(2.0)),
            (1_000, Some(3.0)),
            (2_000, Some(4.0)),
            (3_000, Some(5.0)),
        ];
        assert_eq!(played(&rows), [(2_000, Some(2.0)), (3_000, Some(5.0))]);
    }
}
