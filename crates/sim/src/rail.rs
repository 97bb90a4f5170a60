//! One NIC of the server: what crosses its port, and everything that it has counted.

use crate::counted::{CNP_PRIORITY, Counted, OTHER_PRIORITY, PFC_HOLD, RDMA_PRIORITY, Way};
use crate::fabric::{CAPACITY, DATA_FRAME, LINE, Load, OTHER_SENDERS, Passed, Path};
use crate::job::{Done, Towards, Wants, Wave};
use crate::rng::Rng;
use crate::scenario::Fault;

/// An ACK and a CNP on the wire, FCS included, bytes.
const ACK_FRAME: f64 = 66.0;
const CNP_FRAME: f64 = 78.0;
/// A requester asks for an ACK this often, in packets.
const ACK_EVERY: f64 = 16.0;
/// Packets of an RDMA WRITE of 512 KiB.
const WRITE_PACKETS: f64 = 128.0;
/// Mean Ethernet frame of management, bytes.
const OTHER_FRAME: f64 = 320.0;
/// A peer that goes on pausing refreshes at half of that.
const PFC_REFRESH: f64 = PFC_HOLD / 2.0;
/// What a slow host takes of the line.
const SLOW_DRAIN: f64 = 0.55;
/// Between XOFF and XON of the NIC's own receive buffer, bytes.
const NIC_XON_BELOW: f64 = 256e3;
/// ACK timeout of a queue pair with `NCCL_IB_TIMEOUT=18`, 4.096 us * 2^18, seconds.
const ACK_TIMEOUT: f64 = 4.096e-6 * 262_144.0;
/// Copy engines and the host do not feed the NIC evenly from one millisecond to the next.
const UNEVEN_FROM: f64 = 0.96;
const UNEVEN_TO: f64 = 1.0;
/// A second whose share of waiting is above this counts as stalled in mlx5, percent.
const STALL_PERCENT: f64 = 30.0;

/// Short collisions with other traffic, which every fabric has.
#[derive(Clone, Debug)]
struct Bursts {
    rng: Rng,
    /// Seconds until the next.
    until: f64,
}

impl Bursts {
    /// Seconds between two collisions on one path, on average.
    const MEAN: f64 = 2.0;

    fn new(mut rng: Rng) -> Self {
        let until = rng.wait(Self::MEAN);
        Self { rng, until }
    }

    /// Adds what collides within the next `span` seconds.
    fn disturb(&mut self, span: f64, load: &mut Load) {
        self.until -= span;
        if self.until <= 0.0 {
            load.burst = CAPACITY * self.rng.between(0.14, 0.24);
            load.burst_share = (self.rng.between(150e-6, 400e-6) / span).min(1.0);
            self.until = self.rng.wait(Self::MEAN);
        }
    }
}

/// One NIC.
#[derive(Clone, Debug)]
pub(crate) struct Rail {
    pub(crate) tx: Way,
    pub(crate) rx: Way,
    pub(crate) counted: Counted,
    pub(crate) carrier: bool,
    /// Share of the last full second in which DMA waited for the host, percent.
    pub(crate) stalled_percent: f64,
    /// Seconds of the current second in which DMA waited.
    stalled: f64,
    towards_peer: Path,
    towards_us: Path,
    peer_bursts: Bursts,
    our_bursts: Bursts,
    unevenness: Rng,
    /// Corrected bits per bit received.
    bit_error_rate: f64,
    /// Management traffic, bytes per second.
    other_rate: f64,
    /// True while the peer holds us with PFC.
    held: bool,
}

impl Rail {
    /// A NIC with the history of some days of training.
    pub(crate) fn new(mut rng: Rng) -> Self {
        let mut rail = Self {
            tx: Way::default(),
            rx: Way::default(),
            counted: Counted::default(),
            carrier: true,
            stalled_percent: 0.0,
            stalled: 0.0,
            towards_peer: Path::new(),
            towards_us: Path::new(),
            peer_bursts: Bursts::new(rng.split()),
            our_bursts: Bursts::new(rng.split()),
            unevenness: rng.split(),
            bit_error_rate: rng.between(0.4e-8, 3e-8),
            other_rate: rng.between(80e3, 250e3),
            held: false,
        };
        rail.remember(&mut rng);
        rail
    }

    fn remember(&mut self, rng: &mut Rng) {
        let days = rng.between(2.0, 4.0);
        let data = days * 86_400.0 * CAPACITY * 0.3 / DATA_FRAME;
        let marked = data * rng.between(1e-6, 3e-6);
        self.counted.marked = marked.floor();
        self.counted.cnps_sent = (marked * 0.6).floor();
        self.counted.cnps_handled = (marked * rng.between(0.5, 0.6)).floor();
        let handled = self.counted.cnps_handled;
        for (way, cnps) in [(&mut self.tx, self.counted.cnps_sent), (&mut self.rx, handled)] {
            way.priority[RDMA_PRIORITY].add(data.floor(), DATA_FRAME);
            way.priority[RDMA_PRIORITY].add((data / ACK_EVERY).floor(), ACK_FRAME);
            way.priority[CNP_PRIORITY].add(cnps, CNP_FRAME);
            way.priority[OTHER_PRIORITY].add((days * 86_400.0 * 500.0).floor(), OTHER_FRAME);
        }
        self.counted.write_requests = (data / WRITE_PACKETS).floor();
        self.counted.fec_corrected_bits = (days * 86_400.0 * LINE * 8.0 * self.bit_error_rate).floor();
        self.counted.fec_corrected_blocks = self.counted.fec_corrected_bits;
        // The link comes up, is taken down by the PFC configuration at boot, and comes up again.
        self.counted.carrier_up = 2.0;
        self.counted.carrier_down = 1.0;
        self.counted.link_down = 1.0;
    }

    /// Lets `span` seconds pass.
    pub(crate) fn tick(&mut self, span: f64, wants: &Wants, fault: Option<Fault>) -> Done {
        self.set_carrier(fault != Some(Fault::CarrierLost), wants.in_collective);
        if !self.carrier {
            self.without_carrier(span, wants.in_collective);
            return Done::default();
        }
        self.correct_bits(span);
        self.manage(span);
        self.hold(span, fault == Some(Fault::Storm));
        if self.held {
            // ACKs share the class with data, so a peer waits for us as we wait for it.
            return Done::default();
        }
        let sent = self.send(span, wants);
        let received = self.receive(span, wants, fault == Some(Fault::SlowReceiver));
        let acks_sent = received.delivered / DATA_FRAME / ACK_EVERY;
        let acks_received = sent.sent / DATA_FRAME / ACK_EVERY;
        self.tx.priority[RDMA_PRIORITY].add(acks_sent, ACK_FRAME);
        self.rx.priority[RDMA_PRIORITY].add(acks_received, ACK_FRAME);
        Done {
            tx: sent.sent,
            rx: received.delivered_own,
        }
    }

    fn send(&mut self, span: f64, wants: &Wants) -> Passed {
        let own = wants.tx * self.unevenness.between(UNEVEN_FROM, UNEVEN_TO);
        let mut load = Load {
            own,
            service: CAPACITY,
            ..Load::default()
        };
        collide(&mut load, wants.wave, Towards::Peer);
        self.peer_bursts.disturb(span, &mut load);
        let passed = self.towards_peer.carry(span, &load);
        self.tx.priority[RDMA_PRIORITY].add(passed.sent / DATA_FRAME, DATA_FRAME);
        self.rx.priority[CNP_PRIORITY].add(passed.cnps_own, CNP_FRAME);
        self.counted.cnps_handled += passed.cnps_own;
        self.rx.pause.add(passed.episodes, passed.paused);
        passed
    }

    fn receive(&mut self, span: f64, wants: &Wants, slow: bool) -> Passed {
        let service = if slow { CAPACITY * SLOW_DRAIN } else { CAPACITY };
        let own = wants.rx * self.unevenness.between(UNEVEN_FROM, UNEVEN_TO);
        let mut load = Load {
            own,
            service,
            ..Load::default()
        };
        collide(&mut load, wants.wave, Towards::Us);
        self.our_bursts.disturb(span, &mut load);
        let passed = self.towards_us.carry(span, &load);
        self.rx.priority[RDMA_PRIORITY].add(passed.delivered / DATA_FRAME, DATA_FRAME);
        self.tx.priority[CNP_PRIORITY].add(passed.cnps, CNP_FRAME);
        self.counted.marked += passed.marked;
        self.counted.cnps_sent += passed.cnps;
        self.counted.write_requests += passed.delivered / DATA_FRAME / WRITE_PACKETS;
        if slow {
            self.stall(service, passed.busy);
        }
        passed
    }

    /// A host that takes `drain` bytes per second while the switch would send at the line rate: the receive buffer
    /// swings between its own XOFF and XON for the `busy` seconds.
    fn stall(&mut self, drain: f64, busy: f64) {
        let paused = busy * (1.0 - drain / CAPACITY);
        let swing = NIC_XON_BELOW / (CAPACITY - drain) + NIC_XON_BELOW / drain;
        self.tx.pause.add(busy / swing, paused);
        self.counted.over_threshold += busy / swing;
        self.stalled += paused;
    }

    fn hold(&mut self, span: f64, storm: bool) {
        if storm {
            self.rx.pause.nanoseconds += span * 1e9;
            self.rx.pause.frames += span / PFC_REFRESH;
        } else if self.held {
            self.rx.pause.frames += 1.0;
            self.rx.pause.transitions += 1.0;
        }
        self.held = storm;
    }

    fn set_carrier(&mut self, carrier: bool, in_collective: bool) {
        if carrier == self.carrier {
            return;
        }
        self.carrier = carrier;
        if carrier {
            self.counted.carrier_up += 1.0;
            self.counted.symbol_errors += 12.0;
            if in_collective {
                self.retransmit();
            }
        } else {
            self.counted.carrier_down += 1.0;
            self.counted.link_down += 1.0;
            self.towards_peer = Path::new();
            self.towards_us = Path::new();
            self.held = false;
        }
    }

    /// After an outage each flow finds its gap: the receiver sees packets out of sequence, the sender gets a NAK.
    fn retransmit(&mut self) {
        let flows = self.towards_us.own_flows();
        self.counted.out_of_sequence += 3.0 * flows;
        self.counted.sequence_naks += flows;
        self.counted.duplicates += 2.0 * flows;
        self.counted.adaptive_retransmissions += flows;
    }

    fn without_carrier(&mut self, span: f64, in_collective: bool) {
        if in_collective {
            let flows = self.towards_peer.own_flows();
            self.counted.ack_timeouts += flows * span / ACK_TIMEOUT;
            self.counted.tx_discards += flows * span / ACK_TIMEOUT;
        }
    }

    fn correct_bits(&mut self, span: f64) {
        let bits = span * LINE * 8.0 * self.bit_error_rate;
        self.counted.fec_corrected_bits += bits;
        // At this error rate two bad bits hardly ever meet in one code word.
        self.counted.fec_corrected_blocks += bits;
    }

    fn manage(&mut self, span: f64) {
        for way in [&mut self.tx, &mut self.rx] {
            way.priority[OTHER_PRIORITY].add(self.other_rate * span / OTHER_FRAME, OTHER_FRAME);
        }
    }

    /// Puts the 32-bit counter of requests some requests before its wrap.
    pub(crate) fn bring_near_wrap(&mut self, requests: f64) {
        self.counted.write_requests = 2_f64.powi(32) - requests;
    }

    /// A second of `span` seconds ends: mlx5 gives the share of the last second, not a sum.
    pub(crate) fn end_second(&mut self, span: f64) {
        self.stalled_percent = (100.0 * self.stalled / span).min(100.0);
        self.stalled = 0.0;
        if self.stalled_percent > STALL_PERCENT {
            self.counted.stalled_seconds += 1.0;
        }
    }
}

/// Adds what the wave of an incast brings to a path.
fn collide(load: &mut Load, wave: Option<Wave>, towards: Towards) {
    if let Some(wave) = wave.filter(|wave| wave.towards == towards) {
        load.others = OTHER_SENDERS * CAPACITY;
        load.fresh = wave.begins;
    }
}
