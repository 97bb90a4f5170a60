//! The training job: compute, then a collective over all rails, again and again.

use crate::conditions::Conditions;
use crate::fabric::CAPACITY;
use crate::rng::Rng;
use crate::value::whole;
use crate::world::{STEP, TICK};

/// What a collective moves over each rail in each direction, bytes, where it loads them evenly.
const COLLECTIVE: f64 = 7.2e9;
/// How far a rail may be ahead of the slowest, bytes: the chunks that a ring has in flight.
const LEAD: f64 = 64e6;
/// What even and odd rails carry of that where it does not.
const UNEVEN: [f64; 2] = [1.6, 0.4];
/// Share of the line that point-to-point traffic of the job takes while it computes.
const COMPUTE_SHARE: f64 = 0.02;
/// Within an incast other senders begin anew after this time, nanoseconds.
const WAVE: u64 = 2 * TICK;

/// Which path an incast meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Towards {
    /// The egress to this node: it marks what we receive, and we send CNPs.
    Us,
    /// The egress to our peer: we receive CNPs, and pause.
    Peer,
}

/// Seven other senders collide with the job on a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wave {
    pub(crate) towards: Towards,
    /// They begin now.
    pub(crate) begins: bool,
}

/// What the job wants of a rail for a step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wants {
    /// What the job has to send, bytes per second.
    pub(crate) tx: f64,
    /// What the peer has to send to us, bytes per second.
    pub(crate) rx: f64,
    /// True while a collective has begun and not ended.
    pub(crate) in_collective: bool,
    pub(crate) wave: Option<Wave>,
}

/// What the job got through in a step, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) tx: f64,
    pub(crate) rx: f64,
}

/// An incast within a collective.
#[derive(Clone, Copy, Debug)]
struct Incast {
    towards: Towards,
    /// Nanoseconds of the scenario.
    begin: u64,
    end: u64,
}

impl Incast {
    fn plan(now: u64, rng: &mut Rng) -> Self {
        let towards = if rng.chance(0.5) {
            Towards::Us
        } else {
            Towards::Peer
        };
        let begin = now + nanoseconds(rng.between(0.02, 0.06)) / TICK * TICK;
        Self {
            towards,
            begin,
            end: begin + nanoseconds(rng.between(0.03, 0.06)),
        }
    }

    fn wave(self, time: u64) -> Option<Wave> {
        let Self { towards, begin, end } = self;
        (begin..end).contains(&time).then(|| Wave {
            towards,
            begins: (time - begin) % WAVE < TICK,
        })
    }
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
    rails: Vec<Part>,
    /// What the slowest rail has done, bytes of an even share.
    slowest: f64,
}

/// What a collective does on one rail.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// How much that is, as a multiple of [`COLLECTIVE`].
    share: f64,
    done: Done,
    /// The incast meets it here.
    meets_incast: bool,
}

impl Collective {
    fn begin(now: u64, rails: usize, conditions: Conditions, rng: &mut Rng) -> Self {
        let efficiency = rng.between(0.88, 0.94);
        let incast = (conditions.incast && rng.chance(0.8)).then(|| Incast::plan(now, rng));
        let part = |rail| Part {
            share: if conditions.uneven { UNEVEN[rail % 2] } else { 1.0 },
            done: Done::default(),
            meets_incast: conditions.incast_on(rail, rails),
        };
        Self {
            efficiency,
            incast,
            rails: (0..rails).map(part).collect(),
            slowest: 0.0,
        }
    }

    /// Looks at how far the slowest rail is.
    fn look(&mut self) {
        let done = self
            .rails
            .iter()
            .flat_map(|part| [part.done.tx / part.share, part.done.rx / part.share]);
        self.slowest = done.fold(COLLECTIVE, f64::min);
    }

    fn is_done(&self) -> bool {
        self.slowest > COLLECTIVE - 1.0
    }

    fn wants(&self, rail: usize, time: u64) -> Wants {
        let part = self.rails[rail];
        Wants {
            tx: self.rate(part.done.tx, part.share),
            rx: self.rate(part.done.rx, part.share),
            in_collective: true,
            wave: self
                .incast
                .filter(|_| part.meets_incast)
                .and_then(|incast| incast.wave(time)),
        }
    }

    /// What may still be sent in a step after `done` on a rail of that share, bytes per second.
    fn rate(&self, done: f64, share: f64) -> f64 {
        let most = self.efficiency * CAPACITY;
        let end = (self.slowest + LEAD).min(COLLECTIVE);
        ((end * share - done) / STEP).clamp(0.0, most)
    }
}

/// The job.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    rails: usize,
    /// Nanoseconds of its own: steps that count for several are one to it.
    now: u64,
    phase: Phase,
    rng: Rng,
}

impl Job {
    pub(crate) fn new(rails: usize, mut rng: Rng) -> Self {
        let phase = Phase::Compute(nanoseconds(rng.between(0.02, 0.2)));
        Self {
            rails,
            now: 0,
            phase,
            rng,
        }
    }

    /// A step begins: goes on to the next phase if the present one is over.
    pub(crate) fn proceed(&mut self, conditions: Conditions) {
        let now = self.now;
        self.now += TICK;
        match &mut self.phase {
            Phase::Compute(until) if now >= *until => {
                let collective = Collective::begin(now, self.rails, conditions, &mut self.rng);
                self.phase = Phase::Collective(collective);
            }
            Phase::Compute(_) => {}
            Phase::Collective(collective) => {
                collective.look();
                if collective.is_done() {
                    self.phase = Phase::Compute(now + nanoseconds(self.rng.between(0.20, 0.26)));
                }
            }
        }
    }

    /// What it wants of a rail for the step that has begun.
    pub(crate) fn wants(&self, rail: usize) -> Wants {
        match &self.phase {
            Phase::Compute(_) => {
                let rate = CAPACITY * COMPUTE_SHARE;
                Wants {
                    tx: rate,
                    rx: rate,
                    ..Wants::default()
                }
            }
            Phase::Collective(collective) => collective.wants(rail, self.now - TICK),
        }
    }

    /// Notes what it got of a rail.
    pub(crate) fn note(&mut self, rail: usize, done: Done) {
        if let Phase::Collective(collective) = &mut self.phase {
            let sum = &mut collective.rails[rail].done;
            sum.tx += done.tx;
            sum.rx += done.rx;
        }
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    whole(seconds * 1e9)
}
