//! The server as a whole: its rails, a training job over them, and the time that passes.

use crate::job::Job;
use crate::rail::Rail;
use crate::rng::Rng;
use crate::setup::Setup;

/// The model's step, nanoseconds.
pub(crate) const TICK: u64 = 1_000_000;
/// The same in seconds.
pub(crate) const STEP: f64 = TICK as f64 / 1e9;
/// Steps that one reading may cost. After a longer pause each of them counts for several.
const MOST_TICKS: u64 = 10_000;
const SECOND: u64 = 1_000_000_000;
/// The rail whose 32-bit counter of requests wraps within minutes: it does so once in a day or two on each.
const WRAPPING_RAIL: usize = 0;

/// Everything that the simulator simulates.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) rails: Vec<Rail>,
    job: Job,
    /// Nanoseconds of the scenario that are played.
    time: u64,
    /// When the current second began.
    second: u64,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let mut rng = Rng::new(setup.seed);
        let count = setup.ports.get();
        let mut rails: Vec<Rail> = (0..count).map(|_| Rail::new(setup, rng.split())).collect();
        rails[WRAPPING_RAIL].bring_near_wrap(rng.between(1e6, 3e6));
        let at_first = setup.scenario.conditions(0);
        for (i, rail) in rails.iter_mut().enumerate() {
            rail.meet(at_first.fault_of(i, count), false);
        }
        Self {
            setup,
            job: Job::new(rails.len(), rng),
            rails,
            time: 0,
            second: 0,
        }
    }

    /// Plays until `now`, in nanoseconds of the scenario, in steps of [`TICK`], each of which counts as often as the speed
    /// asks for. After a pause of more than [`MOST_TICKS`] it counts for several of those, evenly over the pause: what
    /// happens is a sample, and what is counted is whole. What is short of a step is left for the next time.
    pub(crate) fn play(&mut self, now: u64) {
        let grain = self.setup.speed.grain();
        let mut steps = now.saturating_sub(self.time) / (TICK * grain);
        let each = steps.div_ceil(MOST_TICKS);
        while steps > 0 {
            let these = each.min(steps);
            self.tick(these * grain);
            steps -= these;
        }
    }

    /// A step that counts `times`.
    fn tick(&mut self, times: u64) {
        let conditions = self.setup.scenario.conditions(self.time);
        self.job.proceed(conditions);
        let rails = self.rails.len();
        for (i, rail) in self.rails.iter_mut().enumerate() {
            let wants = self.job.wants(i);
            let fault = conditions.fault_of(i, rails);
            let done = rail.tick(times as f64, &wants, conditions.control, fault);
            self.job.note(i, done);
        }
        self.time += times * TICK;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PortCount, Scenario};

    #[test]
    fn what_came_in_went_out_or_waits_on_every_path() {
        for scenario in Scenario::ALL {
            for (seed, ports) in [(1, 8), (2, 1), (3, 3)] {
                let ports = PortCount::new(ports).unwrap();
                let mut world = World::new(Setup {
                    ports,
                    ..Setup::new(scenario, seed)
                });
                for second in 1..=40 {
                    world.play(second * SECOND);
                    let lost = world.rails.iter().map(Rail::unaccounted).fold(0.0, f64::max);
                    assert!(lost < 1e-9, "{scenario}, second {second}: {lost} of the bytes");
                }
            }
        }
    }
}
