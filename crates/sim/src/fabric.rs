//! A path through the fabric as a fluid: senders under DCQCN, one switch egress queue with ECN and PFC.
//!
//! Flows of one origin are taken together (a mean field): where the paper's rules say that a flow does or does not
//! get a CNP, here a share of the flows does. `docs/simulation.md` has the parameters and their sources.

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

/// A sender has this many queue pairs in use towards one peer.
const FLOWS: f64 = 4.0;
/// An incast is 8:1: this many senders besides the one that the node's own collective belongs to.
pub(crate) const OTHER_SENDERS: f64 = 7.0;

/// Queue length at which marking begins, bytes.
const K_MIN: f64 = 0.8e6;
/// Queue length from which everything is marked, bytes.
const K_MAX: f64 = 3.2e6;
/// Marking probability just below [`K_MAX`].
const P_MAX: f64 = 0.2;
/// Queue length at which the switch sends XOFF, bytes.
const XOFF: f64 = 6.0e6;
/// How far the queue drains below [`XOFF`] before the switch sends XON, bytes.
const XON_BELOW: f64 = 0.5e6;

/// The notification point sends at most one CNP a flow in this time, seconds (DCQCN).
const CNP_INTERVAL: f64 = 50e-6;
/// Gain of the congestion estimate (DCQCN).
const GAIN: f64 = 1.0 / 256.0;
/// Quiet intervals of fast recovery before the target rate itself grows (DCQCN).
const FAST_RECOVERY: f64 = 5.0;
/// Additive increase a flow and interval: 40 Mb/s on the paper's 40G, in proportion at 400G; bytes per second.
const ADDITIVE_INCREASE: f64 = 400e6 / 8.0;
/// Rate limiters go no lower than this share of the line.
const MIN_SHARE: f64 = 0.001;

/// Like flows of one origin.
#[derive(Clone, Debug)]
struct Senders {
    flows: f64,
    /// Current rate of a flow, bytes per second.
    rate: f64,
    /// Target rate of a flow.
    target: f64,
    /// DCQCN's estimate of congestion, 0..=1.
    alpha: f64,
    /// Control intervals since the last CNP, averaged over the flows.
    quiet: f64,
}

/// Share of the line that each flow of a sender has when nothing limits it.
const FLOW_RATE: f64 = CAPACITY / FLOWS;

impl Senders {
    fn new(flows: f64) -> Self {
        Self {
            flows,
            rate: FLOW_RATE,
            target: FLOW_RATE,
            alpha: 1.0,
            quiet: 0.0,
        }
    }

    fn limit(&self) -> f64 {
        self.flows * self.rate
    }

    fn unlimited(&self) -> bool {
        self.rate >= FLOW_RATE
    }

    /// One control interval in which the share `notified` of the flows gets a CNP.
    fn react(&mut self, notified: f64) {
        if notified <= 0.0 && self.unlimited() {
            return;
        }
        let calm = 1.0 - notified;
        self.target += notified * (self.rate - self.target);
        self.rate *= 1.0 - notified * self.alpha / 2.0;
        self.alpha = (1.0 - GAIN) * self.alpha + GAIN * notified;
        self.quiet = (self.quiet + 1.0) * calm;
        if self.quiet > FAST_RECOVERY {
            self.target = (self.target + calm * ADDITIVE_INCREASE).min(FLOW_RATE * 1.01);
        }
        self.rate = (self.rate + calm * (self.target - self.rate) / 2.0).max(FLOW_RATE * MIN_SHARE);
        if self.unlimited() {
            // The limiter lets go of the flow, and its next CNP finds it as new: alpha starts at 1.
            *self = Self::new(self.flows);
        }
    }
}

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
        }
    }

    /// Flows that a node behind this path can have to notify.
    #[cfg(test)]
    fn flows(&self) -> f64 {
        self.own.flows + self.others.flows
    }

    /// Queue pairs of the own sender.
    pub(crate) fn own_flows(&self) -> f64 {
        self.own.flows
    }

    /// Carries `load` for `span` seconds: at once while nothing queues and no limiter acts, else by DCQCN's intervals.
    pub(crate) fn carry(&mut self, span: f64, load: &Load) -> Passed {
        if load.fresh {
            self.others = Senders::new(self.others.flows);
        }
        if self.is_calm(load) {
            return self.interval(span, load.own, load.others, load.service);
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
            passed.add(&self.interval(interval, load.own, others, load.service));
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

    fn interval(&mut self, span: f64, own: f64, others: f64, service: f64) -> Passed {
        let own = own.min(self.own.limit());
        let arriving = own + others.min(self.others.limit());
        if arriving > 0.0 {
            self.own_share = own / arriving;
        }
        let (paused, episodes) = self.pause(span, arriving, service);
        let before = self.queue;
        let offered = before + arriving * (span - paused);
        self.queue = (offered - service * span).clamp(0.0, XOFF);
        let delivered = offered - self.queue;

        let marking = marking(f64::midpoint(before, self.queue));
        let delivered_own = delivered * self.own_share;
        let cnps_own = self.own.notify(marking, delivered_own, span);
        let cnps_others = self.others.notify(marking, delivered - delivered_own, span);
        let stopped = own > 0.0;
        Passed {
            sent: own * (span - paused),
            delivered,
            delivered_own,
            marked: marking * delivered / DATA_FRAME,
            cnps: cnps_own + cnps_others,
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

impl Senders {
    /// CNPs for these flows, of whose packets `delivered` bytes arrived in `span` seconds; the flows then react.
    fn notify(&mut self, marking: f64, delivered: f64, span: f64) -> f64 {
        let intervals = span / CNP_INTERVAL;
        let packets = delivered / DATA_FRAME / self.flows / intervals;
        let notified = notified(marking, packets);
        self.react(notified);
        self.flows * notified * intervals
    }
}

/// Share of the packets that the switch marks at this queue length: RED as DCQCN configures it.
fn marking(queue: f64) -> f64 {
    if queue <= K_MIN {
        0.0
    } else if queue <= K_MAX {
        P_MAX * (queue - K_MIN) / (K_MAX - K_MIN)
    } else {
        1.0
    }
}

/// Share of the flows that had at least one marked packet among the `packets` that each had in an interval. Never
/// more than the marked packets themselves, also where a flow has less than one packet in an interval.
fn notified(marking: f64, packets: f64) -> f64 {
    if marking <= 0.0 {
        return 0.0;
    }
    (1.0 - (1.0 - marking).powf(packets)).min(marking * packets)
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn marking_is_red() {
        assert!(marking(K_MIN).abs() < 1e-12);
        assert!((marking(f64::midpoint(K_MIN, K_MAX)) - P_MAX / 2.0).abs() < 1e-12);
        assert!((marking(K_MAX) - P_MAX).abs() < 1e-12);
        assert!((marking(K_MAX + 1.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_first_cnp_halves_the_rate_and_quiet_brings_it_back() {
        let mut senders = Senders::new(FLOWS);
        senders.react(1.0);
        assert!((senders.rate / FLOW_RATE - 0.5).abs() < 1e-9);
        let intervals = (1..10_000).find(|_| {
            senders.react(0.0);
            senders.unlimited()
        });
        assert!(intervals.is_some_and(|n| n > 5), "{intervals:?}");
        assert!((senders.alpha - 1.0).abs() < 1e-12);
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
        }
    }
}
