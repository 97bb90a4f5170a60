//! Rows by the minute, the hour or any other step.

use crate::archive::Archive;
use crate::damage::Damage;
use crate::query::{Query, RowTime, Rows};
use crate::second::{self, Extremes, Measure};
use crate::time::Epoch;
use crate::track::Track;
use model::ABSENT;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::sync::Arc;

/// One counter of one track by steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// Whose.
    pub track: Arc<Track>,
    /// Where the counter stands in the track.
    pub column: usize,
    /// The steps that have rows, in the order in which they were recorded.
    pub steps: Vec<Step>,
}

/// What a counter did from one multiple of the step to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it begins, in nanoseconds since 1970: a multiple of the step.
    pub at: i64,
    /// Rows in it.
    pub rows: u64,
    /// When the last of them was read.
    pub time: RowTime,
    /// The last value that was there; [`ABSENT`] if none was.
    pub last: u64,
    /// The least and the most: rates of what counts, readings of the rest. From inside the seconds where the source
    /// was read more often, from row to row elsewhere. `None` if nothing tells.
    pub extremes: Option<Extremes>,
}

impl Archive {
    /// The counters of a query by steps of so many nanoseconds, and what could not be read. Needs memory for the steps,
    /// however many rows there are.
    #[must_use]
    pub fn stepped(&self, query: &Query<'_>, step: NonZeroU64) -> (Vec<Stepped>, Vec<Damage>) {
        let mut tracks: Vec<OfTrack> = Vec::new();
        let damages = self.visit(query, |rows| {
            let known = tracks
                .iter()
                .position(|known| Arc::ptr_eq(&known.track, &rows.track));
            let known = known.unwrap_or_else(|| {
                tracks.push(OfTrack::new(&rows));
                tracks.len() - 1
            });
            tracks[known].take(&rows, step);
            ControlFlow::Continue(())
        });
        (tracks.into_iter().flat_map(OfTrack::stepped).collect(), damages)
    }
}

/// The counters of one track on their way through the rows.
struct OfTrack {
    track: Arc<Track>,
    series: Vec<Series>,
}

/// One counter.
struct Series {
    column: usize,
    measure: Measure,
    /// Nanoseconds that a step must take to tell a rate.
    shortest: u64,
    before: Option<(Epoch, RowTime, u64)>,
    steps: Vec<Step>,
}

impl OfTrack {
    fn new(rows: &Rows) -> Self {
        let schema = rows.track.schema();
        let shortest = second::shortest(&rows.track.driver);
        let series = rows.columns.iter().map(|values| Series {
            column: values.column,
            measure: Measure::new(&schema.columns[values.column]),
            shortest,
            before: None,
            steps: Vec::new(),
        });
        Self {
            track: Arc::clone(&rows.track),
            series: series.collect(),
        }
    }

    /// Takes in rows of the same columns.
    fn take(&mut self, rows: &Rows, step: NonZeroU64) {
        for (series, values) in self.series.iter_mut().zip(&rows.columns) {
            let cells = values.values.iter().zip(&values.extremes);
            for (time, (value, inside)) in rows.times.iter().zip(cells) {
                series.take(rows.epoch, *time, *value, *inside, step);
            }
        }
    }

    fn stepped(self) -> impl Iterator<Item = Stepped> {
        let track = self.track;
        self.series.into_iter().map(move |series| Stepped {
            track: Arc::clone(&track),
            column: series.column,
            steps: series.steps,
        })
    }
}

impl Series {
    fn take(&mut self, epoch: Epoch, time: RowTime, value: u64, inside: Option<Extremes>, step: NonZeroU64) {
        let extremes = inside.or_else(|| self.since_before(epoch, time, value));
        self.before = Some((epoch, time, value));
        self.add(time, value, extremes, step);
    }

    /// What went on since the row before.
    fn since_before(&self, epoch: Epoch, time: RowTime, value: u64) -> Option<Extremes> {
        let before = self.before.filter(|(known, _, _)| *known == epoch);
        let elapsed =
            before.map(|(_, before, _)| time.window.midpoint().saturating_sub(before.window.midpoint()));
        let before = before.map_or(ABSENT, |(_, _, value)| value);
        self.measure
            .extremes(before, value, elapsed.filter(|elapsed| *elapsed >= self.shortest))
    }

    fn add(&mut self, time: RowTime, value: u64, extremes: Option<Extremes>, step: NonZeroU64) {
        let step = i64::try_from(step.get()).unwrap_or(i64::MAX);
        let at = time.wall.saturating_sub(time.wall.rem_euclid(step));
        match self.steps.last_mut().filter(|last| last.at == at) {
            Some(last) => {
                last.rows += 1;
                last.time = time;
                if value != ABSENT {
                    last.last = value;
                }
                last.extremes = match (last.extremes, extremes) {
                    (Some(old), Some(new)) => Some(old.join(new)),
                    (old, new) => old.or(new),
                };
            }
            None => self.steps.push(Step {
                at,
                rows: 1,
                time,
                last: value,
                extremes,
            }),
        }
    }
}
