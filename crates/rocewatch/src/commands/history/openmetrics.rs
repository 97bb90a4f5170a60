//! History as `/metrics` would have shown it, with times: what `promtool tsdb create-blocks-from openmetrics` takes.
//!
//! Names, labels and values are those of a scrape, so that the series go on where scraped ones end: of several sources the
//! same is chosen, totals have their wraps resolved, base units are the same. What the daemon derives over a window, such as
//! ratios, is left to `rate()`.

use super::{Span, Wanted};
use crate::metrics::{Format, Number, family_header, is_exposed, prefix, raw_labels, raw_sources};
use archive::{Archive, Query, Rows, Track, TrackSpan};
use catalog::{Family, FamilyKind, Index, Origin, PREFIX, Scale, Status};
use model::{ABSENT, Schema, SourceKind};
use signals::{Options, PortSignals, Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What is looked up.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) archive: &'a Archive,
    pub(super) wanted: &'a Wanted<'a>,
    pub(super) span: Span,
    pub(super) step: NonZeroU64,
}

/// Writes every family that has samples. A family has to be in one piece, so each is a pass over what feeds it.
pub(super) fn write(view: View<'_>, tracks: &[TrackSpan], out: &mut impl Write) -> io::Result<()> {
    let ports = ports(tracks);
    let exposed = |family: &&Family| {
        family.status == Status::Live && matches!(family.origin, Origin::Counters | Origin::Raw)
    };
    let mut dropped = 0;
    for family in catalog::FAMILIES.iter().filter(exposed) {
        let mut header = Some(family_header(Format::OpenMetrics, family));
        for port in &ports {
            for (prefix, series) in port.series(view, family) {
                dropped += series.dropped;
                if let Some(header) = header.take_if(|_| !series.samples.is_empty()) {
                    out.write_all(header.as_bytes())?;
                }
                series.write(&prefix, out)?;
            }
        }
    }
    if dropped > 0 {
        tracing::warn!(
            "the wall clock was set back: {dropped} samples have later ones of the same time, and are left out"
        );
    }
    out.write_all(b"# EOF\n")
}

/// What stands under the same labels: a port for as long as it is called the same.
struct Port<'a> {
    labels: Labels<'a>,
    tracks: Vec<&'a Track>,
}

type Labels<'a> = (&'a str, u32, Option<&'a str>);

fn labels(track: &Track) -> Labels<'_> {
    (&track.device, track.port.number, track.netdev.as_deref())
}

fn ports(tracks: &[TrackSpan]) -> Vec<Port<'_>> {
    let mut ports: BTreeMap<Labels<'_>, Vec<&Track>> = BTreeMap::new();
    for found in tracks {
        ports.entry(labels(&found.track)).or_default().push(&found.track);
    }
    let of = |(labels, tracks)| Port { labels, tracks };
    ports.into_iter().map(of).collect()
}

/// Samples of a series in ascending order, one a step.
struct Series {
    scale: Scale,
    step: i64,
    /// When, in nanoseconds since 1970, and what was read.
    samples: Vec<(i64, u64)>,
    /// Samples that gave way to later ones of the same time.
    dropped: u64,
}

impl Series {
    fn new(scale: Scale, step: NonZeroU64) -> Self {
        Self {
            scale,
            step: i64::try_from(step.get()).unwrap_or(i64::MAX),
            samples: Vec::new(),
            dropped: 0,
        }
    }

    fn push(&mut self, time: i64, value: u64) {
        // Prometheus takes no sample that is older than the last. Where the clock was set back the later ones count.
        while self
            .samples
            .pop_if(|(last, _)| millis(*last) >= millis(time))
            .is_some()
        {
            self.dropped += 1;
        }
        let step = time.div_euclid(self.step);
        let _ = self
            .samples
            .pop_if(|(last, _)| last.div_euclid(self.step) == step);
        self.samples.push((time, value));
    }

    fn write(&self, prefix: &str, out: &mut impl Write) -> io::Result<()> {
        let mut number = String::new();
        for (time, value) in &self.samples {
            number.clear();
            Number::Scaled(*value, self.scale).write(&mut number);
            let time = millis(*time);
            let (seconds, millis) = (time.div_euclid(1_000), time.rem_euclid(1_000));
            writeln!(out, "{prefix}{number} {seconds}.{millis:03}")?;
        }
        Ok(())
    }
}

/// The resolution of Prometheus.
fn millis(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(1_000_000)
}

/// Where a series' values come from.
enum Place {
    Slot(usize),
    Column(usize),
}

impl Port<'_> {
    /// The series of a family, by prefix.
    fn series(&self, view: View<'_>, family: &'static Family) -> BTreeMap<String, Series> {
        let mut all = BTreeMap::new();
        let mut raw_names = BTreeSet::new();
        for source in self.sources(family) {
            let names = self.read(view, family, source, &raw_names, &mut all);
            raw_names.extend(names);
        }
        all
    }

    /// The sources that feed a family.
    fn sources(&self, family: &Family) -> Vec<SourceKind> {
        if family.origin == Origin::Raw {
            return raw_sources(family).to_vec();
        }
        let feeds = |track: &&&Track| {
            let schema = track.schema();
            let mut meanings = schema.columns.iter().filter_map(|column| column.meaning);
            meanings.any(|meaning| family.takes(meaning.signal(), meaning.index).is_some())
        };
        let sources: BTreeSet<_> = self
            .tracks
            .iter()
            .filter(feeds)
            .map(|track| track.source)
            .collect();
        sources.into_iter().collect()
    }

    /// Every source of the port, of which the engine chooses for each signal.
    fn engine(&self) -> PortSignals {
        // Rates are not asked for.
        let mut engine = PortSignals::new(Options { window: 1 });
        for track in self.tracks.iter().rev() {
            engine.open(Arc::new(track.schema()));
        }
        engine.settle();
        engine
    }

    /// Reads what one source has of a family. `taken` are names that another source has; gives those of this one.
    fn read(
        &self,
        view: View<'_>,
        family: &'static Family,
        source: SourceKind,
        taken: &BTreeSet<String>,
        all: &mut BTreeMap<String, Series>,
    ) -> BTreeSet<String> {
        let mut engine = self.engine();
        let mut names = BTreeSet::new();
        let mut known: Option<Arc<Track>> = None;
        let mut places: Vec<(Place, String)> = Vec::new();
        let ids: BTreeSet<_> = self
            .tracks
            .iter()
            .filter(|track| track.source == source)
            .map(|track| &track.port)
            .collect();
        for port in ids {
            let query = Query {
                port,
                source,
                columns: &[],
                from: view.span.from,
                to: view.span.to,
            };
            let damages = view.archive.visit(&query, |rows| {
                if labels(&rows.track) != self.labels {
                    return ControlFlow::Continue(());
                }
                if !known
                    .as_ref()
                    .is_some_and(|known| Arc::ptr_eq(known, &rows.track))
                {
                    let schema = Arc::new(rows.track.schema());
                    names.extend(schema.columns.iter().map(|column| column.name.to_string()));
                    engine.open(Arc::clone(&schema));
                    places = self.places(view, family, &engine, &schema, taken, all);
                    known = Some(Arc::clone(&rows.track));
                }
                if !places.is_empty() {
                    take(&rows, source, &mut engine, &places, all);
                }
                ControlFlow::Continue(())
            });
            for damage in damages {
                tracing::warn!("left out: {damage}");
            }
        }
        names
    }

    /// What of a track goes out under a family, and adds the series.
    fn places(
        &self,
        view: View<'_>,
        family: &'static Family,
        engine: &PortSignals,
        schema: &Schema,
        taken: &BTreeSet<String>,
        all: &mut BTreeMap<String, Series>,
    ) -> Vec<(Place, String)> {
        let mut places = Vec::new();
        let mut add = |place, more: &[(&'static str, &str)], scale| {
            let prefix = self.prefix(family, more);
            let series = all.entry(prefix.clone());
            series.or_insert_with(|| Series::new(scale, view.step));
            places.push((place, prefix));
        };
        if family.origin == Origin::Raw {
            for (at, column) in schema.columns.iter().enumerate() {
                let otherwise = column
                    .meaning
                    .is_none_or(|meaning| is_exposed(meaning.signal(), meaning.index));
                let exposed = otherwise && schema.source != SourceKind::QpCounters;
                let fits = column.counts == (family.kind == FamilyKind::Counter);
                if !exposed && fits && view.wanted.column(column) && !taken.contains(&*column.name) {
                    let labels = raw_labels(schema.source, &column.name);
                    let labels: Vec<_> = labels.iter().map(|(label, value)| (*label, &**value)).collect();
                    add(Place::Column(at), &labels, Scale::ONE);
                }
            }
            return places;
        }
        for (at, slot) in engine.slots().iter().enumerate() {
            let Some(from) = family.takes(slot.signal, slot.index) else {
                continue;
            };
            if slot.source != schema.source || !is_wanted(view.wanted, slot, schema) {
                continue;
            }
            let index = match slot.index {
                Some(Index::Priority(number) | Index::Lane(number)) => number.to_string(),
                _ => String::new(),
            };
            let indexed = family.index_label().map(|label| (label, index.as_str()));
            let more: Vec<_> = from.labels.iter().copied().chain(indexed).collect();
            add(Place::Slot(at), &more, slot.scale);
        }
        places
    }

    fn prefix(&self, family: &Family, more: &[(&'static str, &str)]) -> String {
        let (device, number, netdev) = self.labels;
        let number = number.to_string();
        let all = [
            ("device", device),
            ("port", &number),
            ("netdev", netdev.unwrap_or_default()),
        ];
        let value = |wanted: &str| {
            let mut known = all.iter().chain(more);
            known.find(|(label, _)| *label == wanted).map(|(_, value)| *value)
        };
        let in_order = family
            .labels
            .iter()
            .filter_map(|label| Some((*label, value(label)?)));
        let suffix = if family.kind == FamilyKind::Counter {
            "_total"
        } else {
            ""
        };
        let mut out = String::new();
        prefix(&format!("{PREFIX}{}", family.name), suffix, in_order, &mut out);
        out
    }
}

fn is_wanted(wanted: &Wanted<'_>, slot: &Slot, schema: &Schema) -> bool {
    let mut columns = schema.find(slot.signal, slot.index);
    columns.any(|column| wanted.column(&schema.columns[column]))
}

/// Takes in rows, and what is shown after each.
fn take(
    rows: &Rows,
    source: SourceKind,
    engine: &mut PortSignals,
    places: &[(Place, String)],
    all: &mut BTreeMap<String, Series>,
) {
    let mut row = vec![ABSENT; rows.columns.len()];
    for (at, time) in rows.times.iter().enumerate() {
        for (cell, column) in row.iter_mut().zip(&rows.columns) {
            *cell = column.values[at];
        }
        engine.row(source, time.window, &row);
        for (place, prefix) in places {
            let value = match place {
                Place::Slot(slot) => engine.value(*slot),
                Place::Column(column) => Some(row[*column]).filter(|value| *value != ABSENT),
            };
            if let (Some(value), Some(series)) = (value, all.get_mut(prefix)) {
                series.push(time.wall, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn series(step: u64, samples: &[(i64, u64)]) -> Series {
        let step = NonZeroU64::new(step).expect("not zero");
        let mut series = Series::new(
            Scale {
                multiply: 1,
                decimals: 6,
            },
            step,
        );
        for (time, value) in samples {
            series.push(*time, *value);
        }
        series
    }

    #[test]
    fn a_step_has_its_last_sample() {
        let samples = [(0, 1), (SECOND, 2), (10 * SECOND - 1, 3), (10 * SECOND, 4)];
        let series = series(10_000_000_000, &samples);
        assert_eq!(series.samples, [(10 * SECOND - 1, 3), (10 * SECOND, 4)]);
        assert_eq!(series.dropped, 0);
    }

    #[test]
    fn after_a_clock_that_was_set_back_the_later_samples_count() {
        let samples = [
            (SECOND, 1),
            (2 * SECOND, 2),
            (3 * SECOND, 3),
            (2 * SECOND, 4),
            (3 * SECOND, 5),
        ];
        let series = series(1_000_000_000, &samples);
        assert_eq!(series.samples, [(SECOND, 1), (2 * SECOND, 4), (3 * SECOND, 5)]);
        assert_eq!(series.dropped, 2);
    }

    #[test]
    fn a_line_has_prefix_value_in_base_units_and_seconds() {
        let mut out = Vec::new();
        let series = series(1_000_000_000, &[(1_795_910_400 * SECOND + 12_345_678, 1_500_000)]);
        series
            .write("a_total{b=\"c\"} ", &mut out)
            .expect("memory takes it");
        assert_eq!(out, b"a_total{b=\"c\"} 1.5 1795910400.012\n");
    }
}
