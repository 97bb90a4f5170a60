//! One row a second from as many as there are, with the extremes inside it.

use crate::time::Span;
use catalog::{Kind, Width};
use model::delta::{self, Delta};
use model::{ABSENT, Schema};
use ring::Window;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// The least and the most that a column did inside a second: rates per second of what counts, readings of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// Rounded down by less than 0.1 %.
    pub low: u64,
    /// Rounded up by less than 0.1 %.
    pub high: u64,
}

impl Extremes {
    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }
}

/// The newest row of a second, and the extremes inside it.
pub(crate) struct Second<'a> {
    pub(crate) span: Span,
    pub(crate) values: &'a [u64],
    /// `None` if there was only one row, which tells no more than its values.
    pub(crate) extremes: Option<&'a [Option<Extremes>]>,
}

/// Thins the rows of one track out.
pub(crate) struct Seconds {
    columns: Box<[Measure]>,
    /// Nanoseconds that a step must take to tell a rate.
    shortest: u64,
    /// The newest row, and the second that it is of.
    newest: Option<(Window, u64)>,
    values: Box<[u64]>,
    extremes: Box<[Option<Extremes>]>,
    /// Rows of the current second.
    rows: u32,
    /// The newest row is not handed on yet.
    pending: bool,
}

/// How to tell what a column did from one value to the next.
#[derive(Clone, Copy)]
pub(crate) struct Measure {
    width: Width,
    counts: bool,
}

impl Seconds {
    /// For rows of a source of a device bound to `driver`.
    pub(crate) fn new(schema: &Schema, driver: &str) -> Self {
        let columns: Box<[_]> = schema.columns.iter().map(Measure::new).collect();
        Self {
            values: vec![ABSENT; columns.len()].into(),
            extremes: vec![None; columns.len()].into(),
            columns,
            shortest: shortest(driver),
            newest: None,
            rows: 0,
            pending: false,
        }
    }

    /// Takes in a row; hands on the second before, if this row begins another.
    pub(crate) fn push(&mut self, window: Window, values: &[u64], hand_on: impl FnOnce(Second<'_>)) {
        assert_eq!(
            values.len(),
            self.columns.len(),
            "a row has the columns of its track"
        );
        let second = window.midpoint() / SECOND;
        if self.newest.is_none_or(|(_, current)| current != second) {
            self.finish(hand_on);
            self.extremes.fill(None);
            self.rows = 0;
        }
        self.note_extremes(window, values);
        self.values.copy_from_slice(values);
        self.newest = Some((window, second));
        self.rows += 1;
        self.pending = true;
    }

    /// Hands on the second that ended before `now`.
    pub(crate) fn end_before(&mut self, now: u64, hand_on: impl FnOnce(Second<'_>)) {
        if self.newest.is_some_and(|(_, second)| second < now / SECOND) {
            self.finish(hand_on);
        }
    }

    /// Hands on what there is.
    pub(crate) fn finish(&mut self, hand_on: impl FnOnce(Second<'_>)) {
        let Some((window, _)) = self.newest.filter(|_| self.pending) else {
            return;
        };
        self.pending = false;
        hand_on(Second {
            span: Span::around(window),
            values: &self.values,
            extremes: (self.rows > 1).then_some(&self.extremes),
        });
    }

    fn note_extremes(&mut self, window: Window, values: &[u64]) {
        let elapsed = self.newest.map_or(0, |(newest, _)| {
            window.midpoint().saturating_sub(newest.midpoint())
        });
        // A rate over a longer time tells nothing of the inside of a second.
        let elapsed = Some(elapsed).filter(|elapsed| (self.shortest..=SECOND).contains(elapsed));
        let known = self.columns.iter().zip(&self.values).zip(values);
        for (extremes, ((column, before), value)) in self.extremes.iter_mut().zip(known) {
            if let Some(new) = column.extremes(*before, *value, elapsed) {
                *extremes = Some(extremes.map_or(new, |old| old.join(new)));
            }
        }
    }
}

/// Nanoseconds that a step must take to tell the rate of a counter of `driver`. One that refreshes its counters once a second shows
/// steps of nothing and of twice as much, whatever is going on, to those who read it more often than half as often.
pub(crate) fn shortest(driver: &str) -> u64 {
    let files = catalog::DRIVERS
        .iter()
        .filter(|file| file.bound_as.contains(&driver));
    let refresh = files.map(|file| u64::from(file.refresh_ms)).max().unwrap_or(0);
    (2 * refresh * MILLISECOND).max(1)
}

impl Measure {
    pub(crate) fn new(column: &model::Column) -> Self {
        let entry = column.meaning.map(|meaning| meaning.entry);
        Self {
            width: entry.map_or(Width::FULL, |entry| entry.width),
            counts: entry.is_none_or(|entry| entry.kind == Kind::Counter),
        }
    }

    fn is_absent(self, value: u64) -> bool {
        value == ABSENT || self.width.all_ones_is_missing && value == self.width.max()
    }

    /// What one step tells; nothing where a value is absent or the counter began anew.
    pub(crate) fn extremes(self, before: u64, value: u64, elapsed: Option<u64>) -> Option<Extremes> {
        if self.is_absent(value) {
            return None;
        }
        if !self.counts {
            return Some(Extremes {
                low: value,
                high: value,
            });
        }
        let elapsed = elapsed.filter(|_| !self.is_absent(before))?;
        match delta::step(before, value, self.width, elapsed) {
            Delta::Grew(grew) => Some(rate(grew, elapsed)),
            Delta::Reset | Delta::Saturated => None,
        }
    }
}

/// So much in so many nanoseconds, per second, rounded down and up.
fn rate(grew: u64, elapsed: u64) -> Extremes {
    let scaled = u128::from(grew) * u128::from(SECOND);
    let whole = |rate| u64::try_from(rate).unwrap_or(u64::MAX);
    Extremes {
        low: whole(scaled / u128::from(elapsed)),
        high: whole(scaled.div_ceil(u128::from(elapsed))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::track::tests::track;
    use model::SourceKind;

    const MS: u64 = 1_000_000;

    fn window(milliseconds: u64) -> Window {
        Window {
            began: milliseconds * MS,
            ended: milliseconds * MS,
        }
    }

    type Seen = (u64, Vec<u64>, Option<Vec<Option<(u64, u64)>>>);

    fn seen(second: &Second<'_>) -> Seen {
        let pair = |extremes: &Option<Extremes>| extremes.map(|e| (e.low, e.high));
        (
            second.span.midpoint(),
            second.values.to_vec(),
            second.extremes.map(|all| all.iter().map(pair).collect()),
        )
    }

    fn play(names: &[&str], rows: &[(u64, &[u64])]) -> Vec<Seen> {
        let schema = track("0000:1a:00.0", SourceKind::HwCounters, names).schema();
        let mut seconds = Seconds::new(&schema, "mlx5_core");
        let mut found = Vec::new();
        for (at, values) in rows {
            seconds.push(window(*at), values, |second| found.push(seen(&second)));
        }
        seconds.finish(|second| found.push(seen(&second)));
        seconds.finish(|_| panic!("a second is handed on once"));
        found
    }

    #[test]
    fn a_second_is_its_newest_row_and_the_extremes_of_its_rates() {
        let found = play(
            &["unknown"],
            &[
                (900, &[10]),
                (1000, &[10]),
                (1100, &[40]),
                (1900, &[48]),
                (2000, &[50]),
            ],
        );
        assert_eq!(
            found,
            [
                (900_000, vec![10], None),
                // 0 in 100 ms, 30 in 100 ms, 8 in 800 ms.
                (1_900_000, vec![48], Some(vec![Some((0, 300))])),
                (2_000_000, vec![50], None),
            ]
        );
    }

    #[test]
    fn rates_enclose_what_is_no_whole_number() {
        let found = play(&["unknown"], &[(0, &[0]), (300, &[1]), (600, &[2])]);
        assert_eq!(found[0].2, Some(vec![Some((3, 4))]));
    }

    #[test]
    fn no_rate_spans_a_reset_or_an_absence() {
        let found = play(
            &["a", "b", "c"],
            &[(0, &[100, ABSENT, 7]), (500, &[3, 5, ABSENT]), (600, &[3, 6, 8])],
        );
        assert_eq!(found[0].2, Some(vec![Some((0, 0)), Some((10, 10)), None]));
    }

    #[test]
    fn a_gap_is_no_rate_inside_a_second() {
        let found = play(&["a"], &[(0, &[0]), (5100, &[1000]), (5200, &[1001])]);
        assert_eq!(found[1].2, Some(vec![Some((10, 10))]));
    }

    #[test]
    fn the_extremes_of_a_setting_are_its_readings() {
        // A gauge of every mlx5 port, in percent.
        let name = catalog::DRIVERS
            .iter()
            .filter(|driver| driver.name == "mlx5_core")
            .flat_map(|driver| driver.entries)
            .find(|entry| {
                entry.kind == Kind::Gauge && entry.source == SourceKind::Ethtool && !entry.name.contains('{')
            })
            .expect("the catalogue has a gauge")
            .name;
        let schema = track("0000:1a:00.0", SourceKind::Ethtool, &[name]).schema();
        let mut seconds = Seconds::new(&schema, "mlx5_core");
        for (at, value) in [(0, 30), (200, 70), (400, 20)] {
            seconds.push(window(at), &[value], |_| panic!("the second is not over"));
        }
        let mut found = None;
        seconds.finish(|second| found = Some(seen(&second)));
        assert_eq!(found.map(|seen| seen.2), Some(Some(vec![Some((20, 70))])));
    }

    #[test]
    fn a_driver_that_refreshes_once_a_second_has_no_rates_inside_it() {
        let slow = catalog::DRIVERS
            .iter()
            .find(|driver| driver.refresh_ms == 1_000)
            .expect("the catalogue has one")
            .bound_as[0];
        let schema = track("0000:1a:00.0", SourceKind::Ethtool, &["a"]).schema();
        let mut seconds = Seconds::new(&schema, slow);
        for (at, value) in [(0, 0), (200, 0), (400, 1_000)] {
            seconds.push(window(at), &[value], |_| panic!("the second is not over"));
        }
        let mut found = None;
        seconds.finish(|second| found = Some(seen(&second)));
        assert_eq!(found.map(|seen| seen.2), Some(Some(vec![None])));
    }

    #[test]
    fn a_second_ends_with_the_clock_where_no_row_ends_it() {
        let schema = track("0000:1a:00.0", SourceKind::HwCounters, &["a"]).schema();
        let mut seconds = Seconds::new(&schema, "mlx5_core");
        seconds.push(window(1500), &[1], |_| {});
        seconds.end_before(1_999 * MS, |_| panic!("it is not over"));
        let mut ended = 0;
        seconds.end_before(2_000 * MS, |_| ended += 1);
        seconds.end_before(3_000 * MS, |_| ended += 1);
        assert_eq!(ended, 1);
    }
}
