//! What only the ports of a node beside each other tell.

use super::board::{Board, Subject};
use super::event::{EventChange, EventKind};
use super::latch::Sample;
use super::thresholds::Thresholds;
use super::{DIRECTIONS, PortSignals};
use catalog::Direction;

/// What a rail carries: a share of its line, at a speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RailTraffic {
    /// Share of the line in use, received and sent.
    utilization: [f64; 2],
    /// Bits per second.
    speed: f64,
}

impl RailTraffic {
    /// What a port carried in the last window; `None` if that is not known.
    #[must_use]
    pub fn of(port: &PortSignals) -> Option<Self> {
        let [rx, tx] = DIRECTIONS.map(|direction| port.utilization(direction));
        Some(Self {
            utilization: [rx?, tx?],
            speed: port.speed()?,
        })
    }
}

/// The speed that most of these ports, which ought to be alike, have; of two equally common ones the higher. `None` if no two
/// agree: then nobody can say what is usual.
#[must_use]
pub fn usual_speed(speeds: &[f64]) -> Option<f64> {
    let mut sorted = speeds.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Of equally many the last, which is the highest.
    sorted
        .chunk_by(|a, b| a.total_cmp(b).is_eq())
        .filter(|alike| alike.len() > 1)
        .max_by_key(|alike| alike.len())
        .map(|alike| alike[0])
}

/// The detectors of what a node's rails do together.
#[derive(Debug)]
pub struct NodeDetectors {
    thresholds: Thresholds,
    started: Option<u64>,
    last: Option<u64>,
    /// Mean of what each rail carried lately, by direction, bits per second; `None` before it was seen.
    means: Vec<Option<[f64; 2]>>,
    board: Board,
}

impl NodeDetectors {
    /// Detectors that have seen nothing yet.
    #[must_use]
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            started: None,
            last: None,
            means: Vec::new(),
            board: Board::default(),
        }
    }

    /// Judges by other thresholds from now on.
    pub fn adjust(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }

    /// Looks at the rails: the ports that a job loads together, always in the same order. One whose traffic is not known
    /// is left out of the comparison.
    pub fn look(
        &mut self,
        now: u64,
        rails: impl Iterator<Item = Option<RailTraffic>>,
    ) -> impl Iterator<Item = EventChange> + '_ {
        let started = *self.started.get_or_insert(now);
        let elapsed = now.saturating_sub(self.last.replace(now).unwrap_or(now));
        let weight = (elapsed as f64 / self.thresholds.rail_window as f64).min(1.0);
        let mut known = 0.0;
        let mut used = [0.0; 2];
        let mut count = 0;
        for (at, rail) in rails.enumerate() {
            if at == self.means.len() {
                self.means.push(None);
            }
            count = at + 1;
            let Some(rail) = rail else {
                self.means[at] = None;
                continue;
            };
            known += 1.0;
            let carried = rail.utilization.map(|share| share * rail.speed);
            let means = self.means[at].get_or_insert(carried);
            for direction in 0..2 {
                used[direction] += rail.utilization[direction];
                means[direction] += (carried[direction] - means[direction]) * weight;
            }
        }
        self.means.truncate(count);
        let ready =
            now.saturating_sub(started) >= self.thresholds.startup_grace.max(self.thresholds.rail_window);
        for (at, direction) in DIRECTIONS.into_iter().enumerate() {
            // An idle node is not an uneven one.
            let busy = (ready && known >= 2.0).then(|| used[at] / known >= self.thresholds.rail_least);
            self.detect_imbalance(now, at, direction, busy);
        }
        self.board.changes()
    }

    fn detect_imbalance(&mut self, now: u64, at: usize, direction: Direction, busy: Option<bool>) {
        let carried = || self.means.iter().flatten().map(|means| means[at]);
        let mean = carried().sum::<f64>() / carried().count() as f64;
        let most = carried().fold(0.0, f64::max);
        let times = busy.map(|busy| if busy { most / mean } else { 0.0 });
        let busiest = self
            .means
            .iter()
            .position(|means| means.is_some_and(|means| means[at] >= most));
        self.board.feed(
            Subject::of(EventKind::RailImbalance, direction),
            self.thresholds.rule(EventKind::RailImbalance),
            Sample::at(now, times),
            || {
                [
                    ("busiest_rail", busiest.unwrap_or(0) as f64),
                    ("busiest_bits_per_second", most),
                    ("mean_bits_per_second", mean),
                ]
            },
        );
    }
}
