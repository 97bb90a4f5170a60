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
        let mut series: Vec<Series> = Vec::new();
        let damages = self.visit(query, |rows| {
            for (place, values) in rows.columns.iter().enumerate() {
                let known = series
                    .iter()
                    .position(|series| series.is_of(&rows, values.column));
                let known = known.unwrap_or_else(|| {
                    series.push(Series::new(&rows, values.column));
                    series.len() - 1
                });
                series[known].take(&rows, place, step);
            }
            ControlFlow::Continue(())
        });
        (series.into_iter().map(|series| series.stepped).collect(), damages)
    }
}

/// One counter on its way through the rows.
struct Series {
    stepped: Stepped,
    measure: Measure,
    /// Nanoseconds that a step must take to tell a rate.
    shortest: u64,
    before: Option<(Epoch, RowTime, u64)>,
}

impl Series {
    fn new(rows: &Rows, column: usize) -> Self {
        Self {
            stepped: Stepped {
                track: Arc::clone(&rows.track),
                column,
                steps: Vec::new(),
            },
            measure: Measure::new(&rows.track.schema().columns[column]),
            shortest: second::shortest(&rows.track.driver),
            before: None,
        }
    }

    fn is_of(&self, rows: &Rows, column: usize) -> bool {
        Arc::ptr_eq(&self.stepped.track, &rows.track) && self.stepped.column == column
    }

    fn take(&mut self, rows: &Rows, place: usize, step: NonZeroU64) {
        let values = &rows.columns[place];
        let cells = values.values.iter().zip(&values.extremes);
        for (time, (value, inside)) in rows.times.iter().zip(cells) {
            let extremes = inside.or_else(|| self.since_before(rows.epoch, *time, *value));
            self.before = Some((rows.epoch, *time, *value));
            self.add(*time, *value, extremes, step);
        }
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
        let at = time.wall - time.wall.rem_euclid(step);
        let steps = &mut self.stepped.steps;
        match steps.last_mut().filter(|last| last.at == at) {
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
            None => steps.push(Step {
                at,
                rows: 1,
                time,
                last: value,
                extremes,
            }),
        }
    }
}
