//! What one counter did over a time.

use super::Span;
use archive::{Archive, Query, Stepped, Track};
use catalog::Width;
use model::delta::{self, Delta};
use model::{ABSENT, Column};
use std::num::NonZeroU64;

/// A counter, and how fast it counted in each step of a time.
pub(super) struct Course {
    pub(super) column: Column,
    /// When each step begins, in nanoseconds since 1970, and the growth per second in it; for what does not count, the
    /// reading.
    pub(super) steps: Vec<(i64, f64)>,
    /// The most inside any second.
    pub(super) peak: Option<u64>,
    /// Grown in all, and in how many nanoseconds.
    grown: u64,
    elapsed: u64,
}

impl Course {
    /// Growth per second over the whole time.
    pub(super) fn rate(&self) -> f64 {
        if self.elapsed == 0 {
            return 0.0;
        }
        self.grown as f64 * 1e9 / self.elapsed as f64
    }

    /// How long a step is, on the average.
    pub(super) fn step_seconds(&self) -> f64 {
        self.elapsed as f64 / 1e9 / self.steps.len().max(1) as f64
    }

    /// True of what only grows.
    pub(super) fn counts(&self) -> bool {
        self.column.counts
    }

    /// True if anything happened.
    pub(super) fn moved(&self) -> bool {
        if self.counts() {
            return self.grown > 0;
        }
        let readings = self.steps.iter().map(|(_, reading)| *reading);
        readings
            .clone()
            .zip(readings.skip(1))
            .any(|(a, b)| (a - b).abs() > f64::EPSILON)
    }
}

/// Every counter of `wanted` tracks over `span`, by steps.
pub(super) fn courses(archive: &Archive, track: &Track, span: Span, step: NonZeroU64) -> Vec<Course> {
    let query = Query {
        port: &track.port,
        source: track.source,
        columns: &[],
        // The step before tells where the first one begins.
        from: span.from.saturating_sub_unsigned(step.get()),
        to: span.to,
    };
    let (stepped, damages) = archive.stepped(&query, step);
    for damage in damages {
        tracing::warn!("left out: {damage}");
    }
    // Another track of this port and source has its own turn.
    let own = stepped.into_iter().filter(|stepped| *stepped.track == *track);
    own.map(|stepped| course(stepped, span)).collect()
}

fn course(stepped: Stepped, span: Span) -> Course {
    let schema = stepped.track.schema();
    let column = schema.columns[stepped.column].clone();
    let width = column.meaning.map_or(Width::FULL, |meaning| meaning.entry.width);
    let mut course = Course {
        column,
        steps: Vec::new(),
        peak: None,
        grown: 0,
        elapsed: 0,
    };
    let mut before: Option<(u64, i64)> = None;
    for step in stepped.steps {
        if step.last == ABSENT {
            continue;
        }
        let wall = step.time.wall;
        let inside = wall >= span.from;
        if inside && let Some(extremes) = step.extremes {
            course.peak = Some(course.peak.unwrap_or(0).max(extremes.high));
        }
        if !course.counts() {
            if inside {
                course.steps.push((step.at, step.last as f64));
            }
        } else if let Some((value, since)) = before.filter(|(_, since)| wall > *since && inside) {
            let elapsed = wall.abs_diff(since);
            if let Delta::Grew(grew) = delta::step(value, step.last, width, elapsed) {
                course.grown += grew;
                course.elapsed += elapsed;
                course.steps.push((step.at, grew as f64 * 1e9 / elapsed as f64));
            }
        }
        before = Some((step.last, wall));
    }
    course
}
