//! The quantities whose rates the ratios are made of.

use crate::histogram;
use crate::meter::Growth;
use crate::ratio;
use catalog::{Direction, Index, Signal};

/// A quantity whose rate something is derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quantity {
    /// Bytes on the wire, with what each packet takes besides its bytes.
    WireRx,
    WireTx,
    PauseRx(u8),
    PauseTx(u8),
    XoffRx(u8),
    XoffTx(u8),
    RdmaPacketsRx,
    Marked,
    CnpSent,
    CnpHandled,
    CnpIgnored,
}

/// What a step between two samples shows.
pub(crate) enum Sample {
    Ratio(f64),
    Implausible,
    /// Nothing that is observed sample by sample, or not without the speed.
    None,
}

impl Quantity {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let single = [
            Self::WireRx,
            Self::WireTx,
            Self::RdmaPacketsRx,
            Self::Marked,
            Self::CnpSent,
            Self::CnpHandled,
            Self::CnpIgnored,
        ];
        let by_priority = (0..8).flat_map(|p| {
            [
                Self::PauseRx(p),
                Self::PauseTx(p),
                Self::XoffRx(p),
                Self::XoffTx(p),
            ]
        });
        single.into_iter().chain(by_priority)
    }

    pub(crate) fn wire(direction: Direction) -> Self {
        match direction {
            Direction::Rx => Self::WireRx,
            Direction::Tx => Self::WireTx,
        }
    }

    pub(crate) fn pause(direction: Direction, priority: u8) -> Self {
        match direction {
            Direction::Rx => Self::PauseRx(priority),
            Direction::Tx => Self::PauseTx(priority),
        }
    }

    pub(crate) fn xoff(direction: Direction, priority: u8) -> Self {
        match direction {
            Direction::Rx => Self::XoffRx(priority),
            Direction::Tx => Self::XoffTx(priority),
        }
    }

    /// The signals that it is the sum of, each with its weight.
    pub(crate) fn signals(self) -> impl Iterator<Item = (Signal, Option<Index>, u64)> {
        let one = |signal| [Some((signal, None, 1)), None];
        let of = |signal, priority| [Some((signal, Some(Index::Priority(priority)), 1)), None];
        let wire = |bytes, packets| {
            [
                Some((bytes, None, 1)),
                Some((packets, None, ratio::L1_OVERHEAD_BYTES)),
            ]
        };
        match self {
            Self::WireRx => wire(Signal::BytesRx, Signal::PacketsRx),
            Self::WireTx => wire(Signal::BytesTx, Signal::PacketsTx),
            Self::PauseRx(priority) => of(Signal::PfcRxPauseDuration, priority),
            Self::PauseTx(priority) => of(Signal::PfcTxPauseDuration, priority),
            Self::XoffRx(priority) => of(Signal::PfcRxXoffFrames, priority),
            Self::XoffTx(priority) => of(Signal::PfcTxXoffFrames, priority),
            Self::RdmaPacketsRx => one(Signal::PacketsRxRdma),
            Self::Marked => one(Signal::EcnRxCe),
            Self::CnpSent => one(Signal::CnpTx),
            Self::CnpHandled => one(Signal::CnpRxHandled),
            Self::CnpIgnored => one(Signal::CnpRxIgnored),
        }
        .into_iter()
        .flatten()
    }

    /// Bounds of its histogram, if it has one.
    pub(crate) fn bounds(self) -> Option<&'static [f64]> {
        match self {
            Self::WireRx | Self::WireTx => Some(histogram::UTILIZATION),
            Self::PauseRx(_) | Self::PauseTx(_) => Some(histogram::PAUSE),
            _ => None,
        }
    }

    pub(crate) fn sample(self, step: Growth, speed: Option<f64>) -> Sample {
        let ratio = match (self, speed) {
            (Self::PauseRx(_) | Self::PauseTx(_), _) => ratio::pause(step.per_second()),
            (Self::WireRx | Self::WireTx, Some(speed)) => ratio::utilization(step.per_second(), speed),
            _ => return Sample::None,
        };
        ratio.map_or(Sample::Implausible, Sample::Ratio)
    }
}
