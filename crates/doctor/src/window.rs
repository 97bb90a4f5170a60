//! What a port's traffic was over a window.

use crate::finding::PortName;
use crate::priority::has;
use catalog::{Direction, Index, Signal};
use model::{Port, Priorities};
use signals::{PortSignals, ratio};
use std::collections::BTreeMap;

type Key = (Signal, Option<Index>);

/// A port's totals at one time, to be compared with a later look.
#[derive(Clone, Debug)]
pub struct Look {
    port: PortName,
    /// When it was looked, in nanoseconds.
    at: u64,
    values: BTreeMap<Key, Value>,
    speed: Option<f64>,
    pfc: Option<Priorities>,
}

/// What a signal read, in its base unit, and when, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Value {
    read: f64,
    at: u64,
}

impl Look {
    /// What a port's newest rows tell `at` this time, in nanoseconds of the rows' clock.
    #[must_use]
    pub fn at(at: u64, port: &Port, rows: &PortSignals) -> Self {
        let values = rows.slots().iter().enumerate().filter_map(|(number, slot)| {
            let value = Value {
                read: slot.scale.apply(rows.value(number)? as f64),
                at: rows.read_at(number)?,
            };
            Some(((slot.signal, slot.index), value))
        });
        Self {
            port: PortName::of(port),
            at,
            values: values.collect(),
            speed: rows.speed(),
            pfc: rows.pfc_mask().and_then(|mask| mask.try_into().ok()),
        }
    }
}

/// A port's traffic over a window: rates per second, in base units (bytes, packets, seconds of pause). What is not known is not
/// in it.
#[derive(Clone, Debug, PartialEq)]
pub struct PortWindow {
    /// Whose traffic.
    pub port: PortName,
    /// Speed of the link, in bits per second.
    pub speed: Option<f64>,
    /// Priorities with PFC.
    pub pfc: Option<Priorities>,
    /// Queue pairs of the device, used or not: the most flows that there can be.
    pub flows: Option<u64>,
    /// Least time between two CNPs of a flow, in seconds, as the NIC is set.
    pub cnp_interval: Option<f64>,
    rates: BTreeMap<Key, f64>,
    /// What gauges read at the end.
    readings: BTreeMap<Key, f64>,
    utilization: [Option<f64>; 2],
    pause: BTreeMap<(bool, u8), f64>,
}

impl PortWindow {
    /// A window of which nothing is known yet.
    #[must_use]
    pub fn new(port: PortName) -> Self {
        Self {
            port,
            speed: None,
            pfc: None,
            flows: None,
            cnp_interval: None,
            rates: BTreeMap::new(),
            readings: BTreeMap::new(),
            utilization: [None; 2],
            pause: BTreeMap::new(),
        }
    }

    /// What lies between two looks at a port; `None` if they are of two ports or in the wrong order. Each rate is over the time between the rows
    /// that its values come from, however late the looks were. A counter that decreased in between began anew, and has no
    /// rate; nor has one of which no row came in between.
    #[must_use]
    pub fn between(earlier: &Look, later: &Look) -> Option<Self> {
        if earlier.port != later.port || earlier.at >= later.at {
            return None;
        }
        let mut window = Self::new(later.port.clone());
        // A window that spans a change of speed is of neither.
        window.speed = later.speed.filter(|_| earlier.speed == later.speed);
        window.pfc = later.pfc;
        for ((signal, index), now) in &later.values {
            window.readings.insert((*signal, *index), now.read);
            let Some(before) = earlier.values.get(&(*signal, *index)) else {
                continue;
            };
            if before.at < now.at && before.read <= now.read {
                let seconds = (now.at - before.at) as f64 / 1e9;
                window.set(*signal, *index, (now.read - before.read) / seconds);
            }
        }
        Some(window)
    }

    /// What a port's rows tell of the last window that they were derived over.
    #[must_use]
    pub fn of(port: &Port, rows: &PortSignals) -> Self {
        let mut window = Self::new(PortName::of(port));
        window.speed = rows.speed();
        window.pfc = rows.pfc_mask().and_then(|mask| mask.try_into().ok());
        for (number, slot) in rows.slots().iter().enumerate() {
            if let Some(rate) = rows.per_second(slot.signal, slot.index) {
                window.set(slot.signal, slot.index, slot.scale.apply(rate));
            }
            if let Some(value) = rows.value(number) {
                let value = slot.scale.apply(value as f64);
                window.readings.insert((slot.signal, slot.index), value);
            }
        }
        for direction in [Direction::Rx, Direction::Tx] {
            window.utilization[at(direction)] = rows.utilization(direction);
            for priority in 0..8 {
                if let Some(ratio) = rows.pause_ratio(direction, priority) {
                    window.pause.insert((is_rx(direction), priority), ratio);
                }
            }
        }
        window
    }

    /// Says how fast a signal grew, per second and in its base unit.
    pub fn set(&mut self, signal: Signal, index: Option<Index>, per_second: f64) {
        self.rates.insert((signal, index), per_second);
    }

    /// Says what share of the line was in use, 0..=1.
    pub fn set_utilization(&mut self, direction: Direction, share: f64) {
        self.utilization[at(direction)] = Some(share);
    }

    /// Says what share of the time a priority was paused, 0..=1. Received pause stops this node.
    pub fn set_pause(&mut self, direction: Direction, priority: u8, ratio: f64) {
        self.pause.insert((is_rx(direction), priority), ratio);
    }

    /// How fast a signal of the port grew.
    #[must_use]
    pub fn rate(&self, signal: Signal) -> Option<f64> {
        self.rates.get(&(signal, None)).copied()
    }

    /// How fast a signal of a priority grew.
    #[must_use]
    pub fn rate_of(&self, signal: Signal, priority: u8) -> Option<f64> {
        self.rates
            .get(&(signal, Some(Index::Priority(priority))))
            .copied()
    }

    /// The sum of those of these signals that are known; `None` if none is.
    #[must_use]
    pub fn sum(&self, signals: &[Signal]) -> Option<f64> {
        let known = signals.iter().filter_map(|signal| self.rate(*signal));
        known.reduce(|a, b| a + b)
    }

    /// The same over all priorities, and of the port where a signal is counted without them.
    #[must_use]
    pub fn sum_of_all(&self, signals: &[Signal]) -> Option<f64> {
        let one = |signal: &Signal| {
            let by_priority = (0..8).filter_map(|priority| self.rate_of(*signal, priority));
            self.rate(*signal).or_else(|| by_priority.reduce(|a, b| a + b))
        };
        signals.iter().filter_map(one).reduce(|a, b| a + b)
    }

    /// What a gauge of the port reads at the end of the window.
    #[must_use]
    pub fn reading(&self, signal: Signal) -> Option<f64> {
        self.readings.get(&(signal, None)).copied()
    }

    /// Share of the line in use.
    #[must_use]
    pub fn utilization(&self, direction: Direction) -> Option<f64> {
        let (bytes, packets) = match direction {
            Direction::Rx => (Signal::BytesRx, Signal::PacketsRx),
            Direction::Tx => (Signal::BytesTx, Signal::PacketsTx),
        };
        self.utilization[at(direction)].or_else(|| {
            let overhead = ratio::L1_OVERHEAD_BYTES as f64 * self.rate(packets)?;
            ratio::utilization(self.rate(bytes)? + overhead, self.speed?)
        })
    }

    /// Share of the time that a priority was paused; `None` of one that has no PFC.
    #[must_use]
    pub fn pause(&self, direction: Direction, priority: u8) -> Option<f64> {
        if self.pfc.is_some_and(|mask| !has(mask, priority)) {
            return None;
        }
        let signal = match direction {
            Direction::Rx => Signal::PfcRxPauseDuration,
            Direction::Tx => Signal::PfcTxPauseDuration,
        };
        let told = self.pause.get(&(is_rx(direction), priority)).copied();
        told.or_else(|| ratio::at_most_one(self.rate_of(signal, priority)?))
    }

    /// The priority that was paused longest, and for what share of the time.
    #[must_use]
    pub fn longest_pause(&self, direction: Direction) -> Option<(u8, f64)> {
        let paused = (0..8).filter_map(|priority| Some((priority, self.pause(direction, priority)?)));
        paused.reduce(|a, b| if b.1 > a.1 { b } else { a })
    }

    /// Share of the received RDMA packets that carry a mark; `None` of too few to tell.
    #[must_use]
    pub fn marked(&self) -> Option<f64> {
        let packets = self.rate(Signal::PacketsRxRdma)?;
        if packets < ratio::LEAST_PACKETS as f64 {
            return None;
        }
        ratio::share(self.rate(Signal::EcnRxCe)?, packets)
    }

    /// CNPs received a second, heeded or not.
    #[must_use]
    pub fn cnps_received(&self) -> Option<f64> {
        self.rate(Signal::CnpRx)
            .or_else(|| self.sum(&[Signal::CnpRxHandled, Signal::CnpRxIgnored]))
    }
}

fn at(direction: Direction) -> usize {
    match direction {
        Direction::Rx => 0,
        Direction::Tx => 1,
    }
}

fn is_rx(direction: Direction) -> bool {
    direction == Direction::Rx
}
