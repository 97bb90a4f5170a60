//! One NIC of the server: what crosses its port, and everything that it has counted.

use crate::cable::Cable;
use crate::conditions::Fault;
use crate::counted::{CNP_PRIORITY, OTHER_PRIORITY, RDMA_PRIORITY, Totals};
use crate::dcqcn::{Control, FLOWS};
use crate::driver::Driver;
use crate::fabric::{CAPACITY, DATA_FRAME, Load, OTHER_SENDERS, Passed, Path};
use crate::job::{Done, Towards, Wants, Wave};
use crate::rng::Rng;
use crate::setup::Setup;
use crate::world::STEP;
use catalog::SourceKind;

/// An ACK and a CNP on the wire, FCS included, bytes.
const ACK_FRAME: f64 = 66.0;
const CNP_FRAME: f64 = 78.0;
/// A requester asks for an ACK this often, in packets.
const ACK_EVERY: f64 = 16.0;
/// Packets of an RDMA WRITE of 512 KiB.
const WRITE_PACKETS: f64 = 128.0;
/// Mean Ethernet frame of management, bytes.
const OTHER_FRAME: f64 = 320.0;
/// What a slow host takes of the line.
const SLOW_DRAIN: f64 = 0.55;
/// Between XOFF and XON of the NIC's own receive buffer, bytes.
const NIC_XON_BELOW: f64 = 256e3;
/// ACK timeout of a queue pair with `NCCL_IB_TIMEOUT=18`, 4.096 us * 2^18, seconds.
const ACK_TIMEOUT: f64 = 4.096e-6 * 262_144.0;
/// Copy engines and the host do not feed the NIC evenly from one millisecond to the next.
const UNEVEN_FROM: f64 = 0.96;
const UNEVEN_TO: f64 = 1.0;
/// What a link with half of its lanes has of the line.
const HALF_SPEED: f64 = 0.5;
/// Messages that come before their receive request, of those to a host that is slow.
const WITHOUT_REQUEST: f64 = 0.005;
/// Damaged frames that ICRC finds and FCS does not.
const FOUND_BY_ICRC: f64 = 0.01;
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

    /// Adds what collides within the next step.
    fn disturb(&mut self, load: &mut Load) {
        self.until -= STEP;
        if self.until <= 0.0 {
            load.burst = CAPACITY * self.rng.between(0.14, 0.24);
            load.burst_share = self.rng.between(150e-6, 400e-6) / STEP;
            self.until = self.rng.wait(Self::MEAN);
        }
    }
}

/// One NIC.
#[derive(Clone, Debug)]
pub(crate) struct Rail {
    pub(crate) setup: Setup,
    /// All that it has counted. What a read shows of it, the driver decides.
    totals: Totals,
    pub(crate) driver: Driver,
    pub(crate) carrier: bool,
    /// How often the carrier came and went, which the kernel counts.
    pub(crate) carrier_up: u32,
    pub(crate) carrier_down: u32,
    /// Share of the line rate that the link has.
    pub(crate) speed: f64,
    /// Share of the last full second in which DMA waited for the host, percent.
    pub(crate) stalled_percent: f64,
    /// Seconds of the current second in which DMA waited.
    stalled: f64,
    towards_peer: Path,
    towards_us: Path,
    peer_bursts: Bursts,
    our_bursts: Bursts,
    unevenness: Rng,
    cable: Cable,
    /// Management traffic, bytes per second.
    other_rate: f64,
    fault: Option<Fault>,
}

impl Rail {
    /// Bits fall over on the way, for want of light.
    pub(crate) fn has_bad_cable(&self) -> bool {
        self.fault == Some(Fault::BadCable)
    }

    /// A NIC with the history of some days of training.
    pub(crate) fn new(setup: Setup, mut rng: Rng) -> Self {
        let totals = Totals::default();
        let mut rail = Self {
            setup,
            driver: Driver::new(setup.nic.refresh_ms() > 0, &totals),
            totals,
            carrier: true,
            // The link comes up, is taken down by the PFC configuration at boot, and comes up again.
            carrier_up: 2,
            carrier_down: 1,
            speed: 1.0,
            stalled_percent: 0.0,
            stalled: 0.0,
            towards_peer: Path::new(),
            towards_us: Path::new(),
            peer_bursts: Bursts::new(rng.split()),
            our_bursts: Bursts::new(rng.split()),
            unevenness: rng.split(),
            cable: Cable::new(&mut rng),
            other_rate: rng.between(80e3, 250e3),
            fault: None,
        };
        rail.remember(&mut rng);
        rail
    }

    fn remember(&mut self, rng: &mut Rng) {
        let days = rng.between(2.0, 4.0);
        let data = days * 86_400.0 * CAPACITY * 0.3 / DATA_FRAME;
        let marked = data * rng.between(1e-6, 3e-6);
        let totals = &mut self.totals;
        totals.marked = marked.floor();
        totals.cnps_sent = (marked * 0.6).floor();
        totals.cnps_handled = (marked * rng.between(0.5, 0.6)).floor();
        let handled = totals.cnps_handled;
        for (way, cnps) in [(&mut totals.tx, totals.cnps_sent), (&mut totals.rx, handled)] {
            way.priority[RDMA_PRIORITY].add(data.floor(), DATA_FRAME);
            way.priority[RDMA_PRIORITY].add((data / ACK_EVERY).floor(), ACK_FRAME);
            way.priority[CNP_PRIORITY].add(cnps, CNP_FRAME);
            way.priority[OTHER_PRIORITY].add((days * 86_400.0 * 500.0).floor(), OTHER_FRAME);
            way.write_requests = (data / WRITE_PACKETS).floor();
        }
        self.cable.carry(totals, days * 86_400.0, 1.0, false);
        totals.link_down = 1.0;
        self.driver.refresh(totals);
    }

    /// What a read of `source` finds counted.
    pub(crate) fn shown(&self, source: SourceKind) -> &Totals {
        self.driver.shows(source, &self.totals)
    }

    /// Lets a step pass that counts `times`. The job gets through one step, whatever it counts.
    pub(crate) fn tick(&mut self, times: f64, wants: &Wants, control: Control, fault: Option<Fault>) -> Done {
        self.meet(fault, wants.in_collective);
        let span = STEP * times;
        if !self.carrier {
            self.without_carrier(span, wants.in_collective);
            return Done::default();
        }
        let bad = fault == Some(Fault::BadCable);
        let lost = self.cable.carry(&mut self.totals, span, self.speed, bad);
        self.manage(span);
        if fault == Some(Fault::Storm) {
            // ACKs share the class with data, so a peer waits for us as we wait for it.
            self.totals.rx.pause.hold(span);
            return Done::default();
        }
        let sent = self.send(wants, control);
        let received = self.receive(wants, control);
        self.count_sent(&sent.repeated(times), control);
        self.count_received(&received.repeated(times));
        let line = CAPACITY * self.speed * STEP;
        self.lose(lost * sent.sent / line, lost * received.delivered / line);
        Done {
            tx: sent.sent,
            rx: received.delivered_own,
        }
    }

    /// Takes in that something breaks, or is whole again.
    pub(crate) fn meet(&mut self, fault: Option<Fault>, in_collective: bool) {
        if fault == self.fault {
            return;
        }
        if self.fault == Some(Fault::Storm) {
            self.totals.rx.pause.release();
        }
        if self.fault == Some(Fault::Reset) || fault == Some(Fault::Recovered) {
            self.totals = Totals::default();
            self.driver.refresh(&self.totals);
        }
        self.driver.meet(fault, &self.totals);
        self.speed = if fault == Some(Fault::HalfSpeed) {
            HALF_SPEED
        } else {
            1.0
        };
        self.fault = fault;
        self.set_carrier(
            !matches!(fault, Some(Fault::CarrierLost | Fault::Reset)),
            in_collective,
        );
    }

    fn send(&mut self, wants: &Wants, control: Control) -> Passed {
        let service = CAPACITY * self.speed;
        let own = wants.tx * self.unevenness.between(UNEVEN_FROM, UNEVEN_TO);
        let mut load = Load {
            own: own.min(service),
            service,
            control,
            ..Load::default()
        };
        collide(&mut load, wants.wave, Towards::Peer);
        self.peer_bursts.disturb(&mut load);
        self.towards_peer.carry(STEP, &load)
    }

    fn count_sent(&mut self, passed: &Passed, control: Control) {
        let packets = passed.sent / DATA_FRAME;
        let Totals { tx, rx, .. } = &mut self.totals;
        tx.priority[RDMA_PRIORITY].add(packets, DATA_FRAME);
        tx.write_requests += packets / WRITE_PACKETS;
        rx.priority[RDMA_PRIORITY].add(packets / ACK_EVERY, ACK_FRAME);
        rx.priority[CNP_PRIORITY].add(passed.cnps_own, CNP_FRAME);
        rx.pause.add(passed.episodes, passed.paused);
        if control == Control::Ignored {
            self.totals.cnps_ignored += passed.cnps_own;
        } else {
            self.totals.cnps_handled += passed.cnps_own;
        }
    }

    /// What the host takes, bytes per second.
    fn drain(&self) -> f64 {
        let share = if self.fault == Some(Fault::SlowReceiver) {
            SLOW_DRAIN
        } else {
            1.0
        };
        CAPACITY * self.speed * share
    }

    fn receive(&mut self, wants: &Wants, control: Control) -> Passed {
        let own = wants.rx * self.unevenness.between(UNEVEN_FROM, UNEVEN_TO);
        // That this node's own senders ignore CNPs does not make those of its peers do so.
        let control = if control == Control::Ignored {
            Control::Whole
        } else {
            control
        };
        let mut load = Load {
            own,
            service: self.drain(),
            control,
            ..Load::default()
        };
        collide(&mut load, wants.wave, Towards::Us);
        self.our_bursts.disturb(&mut load);
        self.towards_us.carry(STEP, &load)
    }

    fn count_received(&mut self, passed: &Passed) {
        let packets = passed.delivered / DATA_FRAME;
        let requests = packets / WRITE_PACKETS;
        let Totals { tx, rx, .. } = &mut self.totals;
        rx.priority[RDMA_PRIORITY].add(packets, DATA_FRAME);
        rx.write_requests += requests;
        tx.priority[RDMA_PRIORITY].add(packets / ACK_EVERY, ACK_FRAME);
        tx.priority[CNP_PRIORITY].add(passed.cnps, CNP_FRAME);
        self.totals.marked += passed.marked;
        self.totals.cnps_sent += passed.cnps;
        if self.fault == Some(Fault::SlowReceiver) {
            self.totals.without_request += requests * WITHOUT_REQUEST;
            self.stall(self.drain(), passed.busy);
        }
    }

    /// A host that takes `drain` bytes per second while the switch would send at the line rate: the receive buffer
    /// swings between its own XOFF and XON for the `busy` seconds, and what has no pause finds it full.
    fn stall(&mut self, drain: f64, busy: f64) {
        let paused = busy * (1.0 - drain / CAPACITY);
        let swing = NIC_XON_BELOW / (CAPACITY - drain) + NIC_XON_BELOW / drain;
        let dropped = self.other_rate / OTHER_FRAME * paused;
        self.totals.tx.pause.add(busy / swing, paused);
        self.totals.over_threshold += busy / swing;
        self.totals.rx_discards.add(dropped, OTHER_FRAME);
        self.stalled += paused;
    }

    fn set_carrier(&mut self, carrier: bool, in_collective: bool) {
        if carrier == self.carrier {
            return;
        }
        self.carrier = carrier;
        if carrier {
            self.carrier_up += 1;
            self.totals.symbol_errors += 12.0;
            if in_collective {
                self.retransmit();
            }
        } else {
            self.carrier_down += 1;
            self.totals.link_down += 1.0;
            self.towards_peer = Path::new();
            self.towards_us = Path::new();
        }
    }

    /// After an outage each flow finds its gap: the receiver sees packets out of sequence, the sender gets a NAK.
    fn retransmit(&mut self) {
        let totals = &mut self.totals;
        totals.out_of_sequence += 3.0 * FLOWS;
        totals.sequence_naks += FLOWS;
        totals.retransmits += 3.0 * FLOWS;
        totals.duplicates += 2.0 * FLOWS;
        totals.adaptive_retransmissions += FLOWS;
    }

    fn without_carrier(&mut self, span: f64, in_collective: bool) {
        if in_collective {
            self.totals.ack_timeouts += FLOWS * span / ACK_TIMEOUT;
            self.totals.tx_discards += FLOWS * span / ACK_TIMEOUT;
        }
    }

    /// So many frames were damaged on the way out and in. A gap is found by the packet behind it; behind the last packet
    /// of a message there is none, and the requester waits in vain.
    fn lose(&mut self, sent: f64, received: f64) {
        let totals = &mut self.totals;
        totals.crc_errors += received * (1.0 - FOUND_BY_ICRC);
        totals.icrc_errors += received * FOUND_BY_ICRC;
        totals.out_of_sequence += received * (1.0 - 1.0 / WRITE_PACKETS);
        totals.duplicates += received / WRITE_PACKETS;
        totals.sequence_naks += sent * (1.0 - 1.0 / WRITE_PACKETS);
        totals.ack_timeouts += sent / WRITE_PACKETS;
        totals.adaptive_retransmissions += sent / WRITE_PACKETS;
        totals.retransmits += sent;
    }

    fn manage(&mut self, span: f64) {
        for way in [&mut self.totals.tx, &mut self.totals.rx] {
            way.priority[OTHER_PRIORITY].add(self.other_rate * span / OTHER_FRAME, OTHER_FRAME);
        }
    }

    /// Puts the 32-bit counter of requests some requests before its wrap.
    pub(crate) fn bring_near_wrap(&mut self, requests: f64) {
        self.totals.rx.write_requests = 2_f64.powi(32) - requests;
        self.driver.refresh(&self.totals);
    }

    /// A second of `span` seconds ends: mlx5 gives the share of the last second, not a sum, and bnxt looks at its
    /// hardware, if the link is up.
    pub(crate) fn end_second(&mut self, span: f64) {
        self.stalled_percent = (100.0 * self.stalled / span).min(100.0);
        self.stalled = 0.0;
        if self.stalled_percent > STALL_PERCENT {
            self.totals.stalled_seconds += 1.0;
        }
        if self.carrier {
            self.driver.refresh(&self.totals);
        }
    }

    /// Share of the bytes on its paths that were lost or made up.
    #[cfg(test)]
    pub(crate) fn unaccounted(&self) -> f64 {
        self.towards_peer.lost().max(self.towards_us.lost())
    }
}

/// Adds what the wave of an incast brings to a path.
fn collide(load: &mut Load, wave: Option<Wave>, towards: Towards) {
    if let Some(wave) = wave.filter(|wave| wave.towards == towards) {
        load.others = OTHER_SENDERS * CAPACITY;
        load.fresh = wave.begins;
    }
}
