//! A path through the fabric as a fluid: senders under DCQCN, one switch egress queue with ECN and PFC.
//!
//! `docs/simulation.md` has the parameters and their sources.

use crate::dcqcn::{Control, FLOWS, Senders, marking};

/// Line rate of a 400G port, bytes per second.
pub(crate) const LINE: f64 = 50e9;
/// A `RoCEv2` WRITE packet over IPv4 with 4096 bytes of payload, Ethernet header and FCS included.
pub(crate) const DATA_FRAME: f64 = 4158.0;
/// Preamble, start delimiter and inter-packet gap, which no byte counter includes.
const WIRE_GAP: f64 = 20.0;
/// Share of the line that data may take; the rest is for ACKs, CNPs, PFC frames and management.
const DATA_SHARE: f64 = 0.99;
/// What a port passes of data frames, bytes per second.
pub(crate) const CAPACITY: f64 = LINE * DATA_FRAME / (DATA_FRAME + WIRE_GAP) * DATA_SHARE;

/// An incast is 8:1: this many senders besides the one that the node's own collective belongs to.
pub(crate) const OTHER_SENDERS: f64 = 7.0;

/// Queue length at which the switch sends XOFF, bytes.
const XOFF: f64 = 6.0e6;
/// How far the queue drains below [`XOFF`] before the switch sends XON, bytes.
const XON_BELOW: f64 = 0.5e6;

/// What went through a path in some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// Bytes that the own sender put on the wire.
    pub(crate) sent: f64,
    /// Bytes that left the queue, of every sender.
    pub(crate) delivered: f64,
    /// Of these, bytes of the own sender.
    pub(crate) delivered_own: f64,
    /// Packets that left the queue with CE.
    pub(crate) marked: f64,
    /// CNPs for every sender.
    pub(crate) cnps: f64,
    /// CNPs for the own sender.
    pub(crate) cnps_own: f64,
    /// Seconds for which PFC stopped the own sender.
    pub(crate) paused: f64,
    /// How often it did.
    pub(crate) episodes: f64,
    /// Seconds for which the queue had something to send.
    pub(crate) busy: f64,
}

impl Passed {
    /// The same again and again, `times` in all.
    pub(crate) fn repeated(&self, times: f64) -> Self {
        Self {
            sent: self.sent * times,
            delivered: self.delivered * times,
            delivered_own: self.delivered_own * times,
            marked: self.marked * times,
            cnps: self.cnps * times,
            cnps_own: self.cnps_own * times,
            paused: self.paused * times,
            episodes: self.episodes * times,
            busy: self.busy * times,
        }
    }

    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.delivered_own += other.delivered_own;
        self.marked += other.marked;
        self.cnps += other.cnps;
        self.cnps_own += other.cnps_own;
        self.paused += other.paused;
        self.episodes += other.episodes;
        self.busy += other.busy;
    }
}

/// What a path is asked to carry; rates in bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Of the own sender.
    pub(crate) own: f64,
    /// Of the other senders together.
    pub(crate) others: f64,
    /// Of the other senders together, on top, for `burst_share` of the time.
    pub(crate) burst: f64,
    /// 0..=1, from the beginning.
    pub(crate) burst_share: f64,
    /// The other senders begin with new flows, which no limiter holds yet.
    pub(crate) fresh: bool,
    /// What the egress passes.
    pub(crate) service: f64,
    /// What ECN does about it.
    pub(crate) control: Control,
}

/// Several senders, one egress queue.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    own: Senders,
    others: Senders,
    /// Bytes waiting.
    queue: f64,
    /// The own sender's share of what arrived last.
    own_share: f64,
    /// All bytes that ever arrived, and that ever left.
    #[cfg(test)]
    ledger: (f64, f64),
}

/// Control intervals in a tick of a millisecond.
const INTERVALS: u32 = 20;

impl Path {
    pub(crate) fn new() -> Self {
        Self {
            own: Senders::new(FLOWS),
            others: Senders::new(FLOWS * OTHER_SENDERS),
            queue: 0.0,
            own_share: 1.0,
            #[cfg(test)]
            ledger: (0.0, 0.0),
        }
    }

    /// Flows that a node behind this path can have to notify.
    #[cfg(test)]
    fn flows(&self) -> f64 {
        self.own.flows + self.others.flows
    }

    #[cfg(test)]
    fn note(&mut self, arrived: f64, left: f64) {
        self.ledger.0 += arrived;
        self.ledger.1 += left;
    }

    /// How many bytes came from nowhere or went there, as a share of all that arrived.
    #[cfg(test)]
    pub(crate) fn lost(&self) -> f64 {
        let (arrived, left) = self.ledger;
        (arrived - left - self.queue).abs() / arrived.max(1.0)
    }

    /// Carries `load` for `span` seconds: at once while nothing queues and no limiter acts, else by DCQCN's intervals.
    pub(crate) fn carry(&mut self, span: f64, load: &Load) -> Passed {
        if load.fresh {
            self.others = Senders::new(self.others.flows);
        }
        if self.is_calm(load) {
            return self.interval(span, load.others, load);
        }
        let interval = span / f64::from(INTERVALS);
        let mut passed = Passed::default();
        for i in 0..INTERVALS {
            let bursting = f64::from(i) < load.burst_share * f64::from(INTERVALS);
            let others = if bursting {
                load.others + load.burst
            } else {
                load.others
            };
            passed.add(&self.interval(interval, others, load));
        }
        passed
    }

    fn is_calm(&self, load: &Load) -> bool {
        self.queue <= 0.0
            && self.own.unlimited()
            && self.others.unlimited()
            && load.burst <= 0.0
            && load.own + load.others <= load.service
    }

    /// As [`Self::carry`], for one interval in which the other senders want `others`.
    fn interval(&mut self, span: f64, others: f64, load: &Load) -> Passed {
        let service = load.service;
        let own = load.own.min(self.own.limit());
        let arriving = own + others.min(self.others.limit());
        if arriving > 0.0 {
            self.own_share = own / arriving;
        }
        let (paused, episodes) = self.pause(span, arriving, service);
        let before = self.queue;
        let offered = before + arriving * (span - paused);
        self.queue = (offered - service * span).clamp(0.0, XOFF);
        let delivered = offered - self.queue;

        #[cfg(test)]
        self.note(arriving * (span - paused), delivered);
        let marking = if load.control == Control::Unmarked {
            0.0
        } else {
            marking(f64::midpoint(before, self.queue))
        };
        let delivered_own = delivered * self.own_share;
        let own_notified = self.own.notified(marking, delivered_own, span);
        let others_notified = self.others.notified(marking, delivered - delivered_own, span);
        let cnps_own = self.own.cnps(own_notified, span);
        let cnps = cnps_own + self.others.cnps(others_notified, span);
        self.others.react(others_notified);
        if load.control != Control::Ignored {
            self.own.react(own_notified);
        }
        let stopped = own > 0.0;
        Passed {
            sent: own * (span - paused),
            delivered,
            delivered_own,
            marked: marking * delivered / DATA_FRAME,
            cnps,
            cnps_own,
            paused: if stopped { paused } else { 0.0 },
            episodes: if stopped { episodes } else { 0.0 },
            busy: if self.queue > 0.0 {
                span
            } else {
                (delivered / service).min(span)
            },
        }
    }

    /// How long and how often the switch stops the senders: once the queue has reached XOFF it swings between XON and
    /// XOFF, rising by what arrives too much and falling by what the egress passes.
    fn pause(&self, span: f64, arriving: f64, service: f64) -> (f64, f64) {
        let excess = arriving - service;
        if excess <= 0.0 || self.queue + excess * span <= XOFF {
            return (0.0, 0.0);
        }
        let swinging = span - (XOFF - self.queue) / excess;
        let swing = XON_BELOW / excess + XON_BELOW / service;
        (swinging * excess / arriving, swinging / swing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcqcn::CNP_INTERVAL;
    use proptest::prelude::*;

    fn incast() -> Load {
        Load {
            own: CAPACITY * 0.9,
            others: OTHER_SENDERS * CAPACITY,
            service: CAPACITY,
            ..Load::default()
        }
    }

    #[test]
    fn an_incast_pauses_first_and_dcqcn_ends_the_pause() {
        let mut path = Path::new();
        let first = path.carry(1e-3, &incast());
        assert!(first.paused > 20e-6 && first.paused < 900e-6, "{first:?}");
        assert!(first.cnps_own > 0.0);
        let later = (0..20).map(|_| path.carry(1e-3, &incast())).last().unwrap();
        assert!(later.paused < 50e-6, "{later:?}");
        let share = later.sent / (CAPACITY * 1e-3);
        assert!(
            (0.02..0.4).contains(&share),
            "the own sender has {share} of the line"
        );
    }

    #[test]
    fn without_marks_the_pause_lasts_as_long_as_the_incast() {
        let mut path = Path::new();
        let unmarked = Load {
            control: Control::Unmarked,
            ..incast()
        };
        let later = (0..20).map(|_| path.carry(1e-3, &unmarked)).last().unwrap();
        // Of 7.9 lines that want to send one passes.
        assert!((later.paused / 1e-3 - 6.9 / 7.9).abs() < 1e-3, "{later:?}");
        assert!(later.marked + later.cnps <= 0.0);
    }

    #[test]
    fn a_sender_that_ignores_its_cnps_takes_the_line() {
        let mut path = Path::new();
        let ignored = Load {
            control: Control::Ignored,
            ..incast()
        };
        let later = (0..40).map(|_| path.carry(1e-3, &ignored)).last().unwrap();
        assert!(later.cnps_own > 0.0);
        assert!(later.sent / (CAPACITY * 1e-3) > 0.8, "{later:?}");
    }

    #[test]
    fn below_capacity_everything_passes_unmarked() {
        let mut path = Path::new();
        let load = Load {
            own: CAPACITY * 0.9,
            service: CAPACITY,
            ..Load::default()
        };
        let passed = path.carry(1e-3, &load);
        assert!((passed.delivered - CAPACITY * 0.9e-3).abs() < 1.0);
        assert!(passed.marked + passed.cnps + passed.paused <= 0.0);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_faster_than_physics(
            loads in prop::collection::vec((0.0..1.0, 0.0..7.0, 0.3..1.0, 1e-3..0.5), 1..60)
        ) {
            let mut path = Path::new();
            for (own, others, service, span) in loads {
                let service = service * CAPACITY;
                let load = Load { own: own * CAPACITY, others: others * CAPACITY, service, ..Load::default() };
                let before = path.queue;
                let passed = path.carry(span, &load);
                prop_assert!((0.0..=XOFF).contains(&path.queue));
                prop_assert!(passed.delivered <= service * span + before.min(1.0) + 1.0);
                prop_assert!(passed.sent <= CAPACITY * (span - passed.paused) + 1.0);
                prop_assert!(passed.paused <= span);
                prop_assert!(passed.cnps <= passed.marked + 1e-6);
                prop_assert!(passed.cnps <= path.flows() * span / CNP_INTERVAL + 1e-6);
                prop_assert!(passed.marked <= passed.delivered / DATA_FRAME + 1e-6);
            }
            prop_assert!(path.lost() < 1e-9);
        }
    }
}
