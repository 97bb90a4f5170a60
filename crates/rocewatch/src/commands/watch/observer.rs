//! Follows what every port does from one moment to another.

use super::report::{Fault, Pause, PortReport, Traffic};
use catalog::{Direction, FAMILIES, Family, FamilyKind, Index, Scale, Signal};
use model::{Port, PortId};
use signals::{PortSignals, ratio};
use std::collections::{BTreeMap, BTreeSet};

/// Families whose growth is a fault, of the fabric, of this node or of a program.
const FAULTS: [&str; 9] = [
    "roce_errors",
    "drops",
    "priority_drops",
    "priority_host_drops",
    "link_errors",
    "fec_uncorrectable_blocks",
    "pcie_errors",
    "module_events",
    "pause_storm_events",
];

/// A port at one moment.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) port: &'a Port,
    pub(super) rail: Option<usize>,
    pub(super) signals: &'a PortSignals,
}

/// What the ports have done since the observer began.
pub(super) struct Observer {
    /// Signals that only grow.
    counting: BTreeSet<Signal>,
    ports: BTreeMap<PortId, Course>,
}

/// What one port has done.
#[derive(Default)]
struct Course {
    device: String,
    number: u32,
    netdev: Option<String>,
    rail: Option<usize>,
    /// The highest that the link had, in bits per second.
    speed: Option<f64>,
    counts: BTreeMap<(Signal, Option<Index>), Count>,
    /// The most of any window, and of any sampling interval, received and sent.
    busiest: [Option<f64>; 2],
    peaks: [Option<f64>; 2],
    /// The largest share of any window that a priority was paused, received and sent.
    most_paused: [[Option<f64>; 8]; 2],
    /// It was there at the last look.
    there: bool,
}

/// Growth of one signal.
struct Count {
    last: u64,
    grown: u64,
    scale: Scale,
    /// It fell meanwhile: nobody knows by how much it had grown.
    began_anew: bool,
}

impl Observer {
    /// Begins with the values of now.
    pub(super) fn begin<'a>(views: impl Iterator<Item = View<'a>>) -> Self {
        let counters = FAMILIES
            .iter()
            .filter(|family| family.kind == FamilyKind::Counter);
        let mut observer = Self {
            counting: counters
                .flat_map(|family| family.from)
                .map(|from| from.signal)
                .collect(),
            ports: BTreeMap::new(),
        };
        for view in views {
            observer.course(view);
        }
        observer
    }

    /// Takes in the values of now.
    pub(super) fn look<'a>(&mut self, views: impl Iterator<Item = View<'a>>) {
        self.ports.values_mut().for_each(|course| course.there = false);
        for view in views {
            let course = self.course(view);
            course.take_peaks(view.signals);
        }
    }

    /// The course of a port, with its counters as they are now.
    fn course(&mut self, view: View<'_>) -> &mut Course {
        let course = self.ports.entry(view.port.id.clone()).or_default();
        course.there = true;
        course.device.clone_from(&view.port.device);
        course.number = view.port.id.number;
        course.netdev.clone_from(&view.port.netdev);
        course.rail = view.rail;
        let speeds = course.speed.into_iter().chain(view.signals.speed());
        course.speed = speeds.reduce(f64::max);
        course.count(view.signals, &self.counting);
        course
    }

    /// What every port has done, in `seconds`.
    pub(super) fn end(self, seconds: f64) -> Vec<PortReport> {
        let courses = self.ports.into_values();
        courses.map(|course| course.report(seconds)).collect()
    }
}

impl Course {
    fn count(&mut self, signals: &PortSignals, counting: &BTreeSet<Signal>) {
        for (at, slot) in signals.slots().iter().enumerate() {
            let Some(value) = signals.value(at).filter(|_| counting.contains(&slot.signal)) else {
                continue;
            };
            let count = self.counts.entry((slot.signal, slot.index));
            count.or_insert_with(|| Count::new(value, slot.scale)).take(value);
        }
    }

    fn take_peaks(&mut self, signals: &PortSignals) {
        for (at, direction) in [Direction::Rx, Direction::Tx].into_iter().enumerate() {
            raise(&mut self.busiest[at], signals.utilization(direction));
            let step = signals.utilization_step(direction);
            raise(&mut self.peaks[at], step.map(|step| step.ratio));
            for (priority, most) in (0..8).zip(&mut self.most_paused[at]) {
                raise(most, signals.pause_ratio(direction, priority));
            }
        }
    }

    /// What a signal has grown by, in its base unit; `None` if nobody knows.
    fn grown(&self, signal: Signal, index: Option<Index>) -> Option<f64> {
        let count = self.counts.get(&(signal, index))?;
        (!count.began_anew).then(|| count.scale.apply(count.grown as f64))
    }

    /// The same of something that is counted one by one.
    fn number(&self, signal: Signal) -> Option<u64> {
        let count = self.counts.get(&(signal, None))?;
        (!count.began_anew).then_some(count.grown)
    }

    fn report(self, seconds: f64) -> PortReport {
        let marked = self.number(Signal::EcnRxCe);
        let received = self.number(Signal::PacketsRxRdma);
        PortReport {
            bits_per_second: self.speed,
            rx: self.traffic(Direction::Rx, seconds),
            tx: self.traffic(Direction::Tx, seconds),
            pauses: self.pauses(seconds),
            ce_packets: marked,
            ce_share: marked
                .zip(received)
                .filter(|(_, received)| *received >= ratio::LEAST_PACKETS)
                .and_then(|(marked, received)| ratio::share(marked as f64, received as f64)),
            cnps_sent: self.number(Signal::CnpTx),
            cnps_received: self
                .number(Signal::CnpRx)
                .or_else(|| Some(self.number(Signal::CnpRxHandled)? + self.number(Signal::CnpRxIgnored)?)),
            cnps_ignored: self.number(Signal::CnpRxIgnored),
            link_downs: self.number(Signal::LinkCarrierDown),
            faults: self.faults(),
            began_anew: self.counts.values().filter(|count| count.began_anew).count(),
            gone: !self.there,
            device: self.device,
            number: self.number,
            netdev: self.netdev,
            rail: self.rail,
        }
    }

    fn traffic(&self, direction: Direction, seconds: f64) -> Traffic {
        let (bytes, packets, rdma_bytes, rdma_packets) = match direction {
            Direction::Rx => (
                Signal::BytesRx,
                Signal::PacketsRx,
                Signal::BytesRxRdma,
                Signal::PacketsRxRdma,
            ),
            Direction::Tx => (
                Signal::BytesTx,
                Signal::PacketsTx,
                Signal::BytesTxRdma,
                Signal::PacketsTxRdma,
            ),
        };
        let bytes = self.grown(bytes, None);
        let packets = self.grown(packets, None);
        let on_wire = bytes
            .zip(packets)
            .map(|(bytes, packets)| bytes + packets * ratio::L1_OVERHEAD_BYTES as f64);
        Traffic {
            bytes,
            packets,
            rdma_bytes: self.grown(rdma_bytes, None),
            rdma_packets: self.grown(rdma_packets, None),
            utilization: on_wire
                .zip(self.speed)
                .filter(|_| seconds > 0.0)
                .and_then(|(on_wire, speed)| ratio::utilization(on_wire / seconds, speed)),
            busiest_second: self.busiest[direction as usize],
            peak: self.peaks[direction as usize],
        }
    }

    /// Everything of pause that was seen at all.
    fn pauses(&self, seconds: f64) -> Vec<Pause> {
        let mut pauses = Vec::new();
        for direction in [Direction::Rx, Direction::Tx] {
            let (paused, frames, global, global_frames) = match direction {
                Direction::Rx => (
                    Signal::PfcRxPauseDuration,
                    [Signal::PfcRxFrames, Signal::PfcRxXoffFrames],
                    Signal::PauseRxPauseDuration,
                    Signal::PauseRxFrames,
                ),
                Direction::Tx => (
                    Signal::PfcTxPauseDuration,
                    [Signal::PfcTxFrames, Signal::PfcTxXoffFrames],
                    Signal::PauseTxPauseDuration,
                    Signal::PauseTxFrames,
                ),
            };
            for priority in 0..8 {
                let index = Some(Index::Priority(priority));
                pauses.push(Pause {
                    direction: direction.as_str().into(),
                    priority: Some(priority),
                    seconds: self.grown(paused, index),
                    share: self.share_of(paused, index, seconds),
                    busiest_second: self.most_paused[direction as usize][usize::from(priority)],
                    frames: frames.iter().find_map(|frames| self.grown(*frames, index)),
                });
            }
            pauses.push(Pause {
                direction: direction.as_str().into(),
                priority: None,
                seconds: self.grown(global, None),
                share: self.share_of(global, None, seconds),
                busiest_second: None,
                frames: self.grown(global_frames, None),
            });
        }
        pauses.retain(|pause| pause.seconds > Some(0.0) || pause.frames > Some(0.0));
        pauses
    }

    fn share_of(&self, paused: Signal, index: Option<Index>, seconds: f64) -> Option<f64> {
        let paused = self.grown(paused, index).filter(|_| seconds > 0.0)?;
        ratio::at_most_one(paused / seconds)
    }

    fn faults(&self) -> Vec<Fault> {
        let families = FAULTS.iter().filter_map(|name| catalog::family(name));
        families.flat_map(|family| self.faults_of(family)).collect()
    }

    fn faults_of(&self, family: &'static Family) -> impl Iterator<Item = Fault> {
        self.counts.iter().filter_map(|((signal, index), count)| {
            let from = family.takes(*signal, *index)?;
            let count = (!count.began_anew && count.grown > 0).then_some(count.grown)?;
            let labels = from.labels.iter().map(|(_, value)| *value);
            Some(Fault {
                metric: family.exposed_name(),
                kind: labels.collect::<Vec<_>>().join(" "),
                priority: match index {
                    Some(Index::Priority(priority)) => Some(*priority),
                    _ => None,
                },
                count,
            })
        })
    }
}

impl Count {
    fn new(value: u64, scale: Scale) -> Self {
        Self {
            last: value,
            grown: 0,
            scale,
            began_anew: false,
        }
    }

    fn take(&mut self, value: u64) {
        match value.checked_sub(self.last) {
            Some(grew) => self.grown += grew,
            None => self.began_anew = true,
        }
        self.last = value;
    }
}

/// Keeps the larger.
fn raise(most: &mut Option<f64>, value: Option<f64>) {
    *most = most.iter().copied().chain(value).reduce(f64::max);
}
