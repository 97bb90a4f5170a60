//! The server as a whole: eight rails, a training job over them, and the time that passes.

use crate::job::Job;
use crate::rail::Rail;
use crate::rng::Rng;
use crate::scenario::Scenario;

/// NICs of the server.
pub(crate) const RAILS: usize = 8;
/// The model's step, nanoseconds.
pub(crate) const TICK: u64 = 1_000_000;
/// Steps that one reading may cost. After a longer pause the steps become longer instead.
const MOST_TICKS: u64 = 10_000;
const SECOND: u64 = 1_000_000_000;
/// The rail whose 32-bit counter of requests wraps within minutes: it does so once in a day or two on each.
const WRAPPING_RAIL: usize = 0;

/// Everything that the simulator simulates.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) rails: [Rail; RAILS],
    scenario: Scenario,
    job: Job,
    /// Nanoseconds of the scenario that are played.
    time: u64,
    /// When the current second began.
    second: u64,
}

impl World {
    pub(crate) fn new(scenario: Scenario, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut rails: [Rail; RAILS] = std::array::from_fn(|_| Rail::new(rng.split()));
        rails[WRAPPING_RAIL].bring_near_wrap(rng.between(1e6, 3e6));
        Self {
            rails,
            scenario,
            job: Job::new(rng),
            time: 0,
            second: 0,
        }
    }

    /// Plays until `now`, in nanoseconds of the scenario, in steps of [`TICK`]; after a pause of more than
    /// [`MOST_TICKS`] in that many longer ones. What is short of a step is left for the next time.
    pub(crate) fn play(&mut self, now: u64) {
        let mut ticks = now.saturating_sub(self.time) / TICK;
        let stretch = ticks.div_ceil(MOST_TICKS);
        while ticks > 0 {
            let step = stretch.min(ticks);
            self.tick(step * TICK);
            ticks -= step;
        }
    }

    fn tick(&mut self, span: u64) {
        let conditions = self.scenario.conditions(self.time);
        let seconds = span as f64 / 1e9;
        self.job.proceed(self.time, conditions);
        for (i, rail) in self.rails.iter_mut().enumerate() {
            let wants = self.job.wants(i, self.time, seconds);
            let done = rail.tick(seconds, &wants, conditions.fault_of(i));
            self.job.note(i, done);
        }
        self.time += span;
        self.end_second();
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
