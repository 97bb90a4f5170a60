//! The server as a whole: eight rails, a training job over them, and the time that passes.

use crate::fabric::CAPACITY;
use crate::rail::{Done, Orders, Rail, Towards};
use crate::rng::Rng;
use crate::scenario::{Conditions, FLAP_RAIL, INCAST_RAIL, SLOW_RAIL, STORM_RAIL, Scenario};

/// NICs of the server.
pub(crate) const RAILS: usize = 8;
/// The model's step, nanoseconds.
pub(crate) const TICK: u64 = 1_000_000;
/// Steps that one reading may cost. After a longer pause the steps become longer instead.
const MOST_TICKS: u64 = 10_000;
const SECOND: u64 = 1_000_000_000;

/// What a collective moves over each rail in each direction, bytes.
const COLLECTIVE: f64 = 7.2e9;
/// How far a rail may be ahead of the slowest, bytes: the chunks that a ring has in flight.
const LEAD: f64 = 64e6;
/// Share of the line that point-to-point traffic of the job takes while it computes.
const COMPUTE_SHARE: f64 = 0.02;

/// An incast within a collective.
#[derive(Clone, Copy, Debug)]
struct Incast {
    towards: Towards,
    /// Nanoseconds of the scenario.
    begin: u64,
    end: u64,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Until this nanosecond.
    Compute(u64),
    Collective(Collective),
}

#[derive(Clone, Debug)]
struct Collective {
    /// Share of the line that the collective library reaches.
    efficiency: f64,
    incast: Option<Incast>,
    progress: [Done; RAILS],
}

impl Collective {
    fn begin(now: u64, conditions: Conditions, rng: &mut Rng) -> Self {
        let efficiency = rng.between(0.87, 0.93);
        let incast = (conditions.incast && rng.chance(0.8)).then(|| {
            let begin = now + nanoseconds(rng.between(0.02, 0.06));
            let towards = if rng.chance(0.5) {
                Towards::Us
            } else {
                Towards::Peer
            };
            Incast {
                towards,
                begin,
                end: begin + nanoseconds(rng.between(0.03, 0.06)),
            }
        });
        Self {
            efficiency,
            incast,
            progress: [Done::default(); RAILS],
        }
    }

    fn slowest(&self) -> f64 {
        self.progress
            .iter()
            .flat_map(|done| [done.tx, done.rx])
            .fold(COLLECTIVE, f64::min)
    }

    fn done(&self) -> bool {
        self.slowest() > COLLECTIVE - 1.0
    }

    /// What a flow that got through `progress` may send in `span` seconds, bytes per second.
    fn demand(&self, progress: f64, slowest: f64, span: f64) -> f64 {
        let room = (slowest + LEAD * (span * 1e3).max(1.0)).min(COLLECTIVE) - progress;
        (room / span).clamp(0.0, self.efficiency * CAPACITY)
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    crate::columns::whole(seconds * 1e9)
}

/// Everything that the simulator simulates.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) rails: [Rail; RAILS],
    scenario: Scenario,
    phase: Phase,
    rng: Rng,
    /// Nanoseconds of the scenario that are played.
    time: u64,
    /// When the current second began.
    second: u64,
}

impl World {
    pub(crate) fn new(scenario: Scenario, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let rails = std::array::from_fn(|_| Rail::new(rng.split()));
        let phase = Phase::Compute(nanoseconds(rng.between(0.02, 0.2)));
        Self {
            rails,
            scenario,
            phase,
            rng,
            time: 0,
            second: 0,
        }
    }

    /// Plays until `now`, in nanoseconds of the scenario, in steps of [`TICK`]; after a pause of more than
    /// [`MOST_TICKS`] in that many longer ones. What is short of a step is left for the next time.
    pub(crate) fn play(&mut self, now: u64) {
        let ticks = now.saturating_sub(self.time) / TICK;
        let stretch = ticks.div_ceil(MOST_TICKS).max(1);
        let mut left = ticks;
        while left > 0 {
            let step = stretch.min(left);
            self.tick(step * TICK);
            left -= step;
        }
    }

    fn tick(&mut self, span: u64) {
        let conditions = self.scenario.conditions(self.time);
        self.next_phase(conditions);
        let seconds = span as f64 / 1e9;
        match &mut self.phase {
            Phase::Compute(_) => {
                let rate = CAPACITY * COMPUTE_SHARE;
                for (i, rail) in self.rails.iter_mut().enumerate() {
                    rail.tick(
                        seconds,
                        &Orders {
                            tx: rate,
                            rx: rate,
                            ..orders(i, conditions)
                        },
                    );
                }
            }
            Phase::Collective(collective) => {
                let slowest = collective.slowest();
                for (i, rail) in self.rails.iter_mut().enumerate() {
                    let progress = collective.progress[i];
                    let done = rail.tick(
                        seconds,
                        &Orders {
                            tx: collective.demand(progress.tx, slowest, seconds),
                            rx: collective.demand(progress.rx, slowest, seconds),
                            in_collective: true,
                            incast: collective
                                .incast
                                .filter(|_| i == INCAST_RAIL)
                                .and_then(|incast| incast.at(self.time)),
                            ..orders(i, conditions)
                        },
                    );
                    collective.progress[i].tx += done.tx;
                    collective.progress[i].rx += done.rx;
                }
            }
        }
        self.time += span;
        self.end_second();
    }

    fn next_phase(&mut self, conditions: Conditions) {
        match &self.phase {
            Phase::Compute(until) if self.time >= *until => {
                self.phase = Phase::Collective(Collective::begin(self.time, conditions, &mut self.rng));
            }
            Phase::Collective(collective) if collective.done() => {
                self.phase = Phase::Compute(self.time + nanoseconds(self.rng.between(0.20, 0.26)));
            }
            _ => {}
        }
    }

    fn end_second(&mut self) {
        let span = self.time - self.second;
        if span >= SECOND {
            self.second = self.time;
            for rail in &mut self.rails {
                rail.end_second(span as f64 / 1e9);
            }
        }
    }
}

impl Incast {
    fn at(self, time: u64) -> Option<Towards> {
        (self.begin..self.end).contains(&time).then_some(self.towards)
    }
}

/// What the fabric does to one rail.
fn orders(rail: usize, conditions: Conditions) -> Orders {
    Orders {
        storm: conditions.storm && rail == STORM_RAIL,
        slow_receiver: conditions.slow_receiver && rail == SLOW_RAIL,
        carrier_lost: conditions.carrier_lost && rail == FLAP_RAIL,
        ..Orders::default()
    }
}
