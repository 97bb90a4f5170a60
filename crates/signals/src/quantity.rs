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
    /// What one signal counts.
    Count(Signal, Option<Index>),
}

/// Signals of the port whose rates are followed.
const COUNTS: [Signal; 24] = [
    Signal::PacketsRxRdma,
    Signal::PacketsTxRdma,
    Signal::EcnRxCe,
    Signal::CnpTx,
    Signal::CnpRx,
    Signal::CnpRxHandled,
    Signal::CnpRxIgnored,
    Signal::PauseRxFrames,
    Signal::PauseTxFrames,
    Signal::PauseRxXoffFrames,
    Signal::PauseTxXoffFrames,
    Signal::PfcStormWarning,
    Signal::PfcStormError,
    Signal::RoceAckTimeout,
    Signal::RoceRetryExceeded,
    Signal::RoceRnrRetryExceeded,
    Signal::RoceRetransmits,
    Signal::RoceRxOutOfSequence,
    Signal::RoceRxNakSequence,
    Signal::RoceRxIcrcErrors,
    Signal::FecCorrectedBits,
    Signal::FecUncorrectableBlocks,
    Signal::PcieOverflowDrops,
    Signal::LinkRxCrcErrors,
];

/// The same of each priority.
const COUNTS_BY_PRIORITY: [Signal; 6] = [
    Signal::PfcRxFrames,
    Signal::PfcTxFrames,
    Signal::PfcRxXoffFrames,
    Signal::PfcTxXoffFrames,
    Signal::DropRxNoBuffer,
    Signal::DropRxHostBuffer,
];

/// What a step between two samples shows.
pub(crate) enum Sample {
    Ratio(f64),
    Implausible,
    /// Nothing that is observed sample by sample, or not without the speed.
    None,
}

impl Quantity {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let counts = COUNTS.into_iter().map(|signal| Self::Count(signal, None));
        let pauses = (0..8).flat_map(|p| [Self::PauseRx(p), Self::PauseTx(p)]);
        let counts_by_priority = COUNTS_BY_PRIORITY
            .into_iter()
            .flat_map(|signal| (0..8).map(move |p| Self::Count(signal, Some(Index::Priority(p)))));
        [Self::WireRx, Self::WireTx]
            .into_iter()
            .chain(counts)
            .chain(pauses)
            .chain(counts_by_priority)
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
        let signal = match direction {
            Direction::Rx => Signal::PfcRxXoffFrames,
            Direction::Tx => Signal::PfcTxXoffFrames,
        };
        Self::Count(signal, Some(Index::Priority(priority)))
    }

    /// The signals that it is the sum of, each with its weight.
    pub(crate) fn signals(self) -> impl Iterator<Item = (Signal, Option<Index>, u64)> {
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
            Self::Count(signal, index) => [Some((signal, index, 1)), None],
        }
        .into_iter()
        .flatten()
    }

    /// Bounds of its histogram, if it has one.
    pub(crate) fn bounds(self) -> Option<&'static [f64]> {
        match self {
            Self::WireRx | Self::WireTx => Some(histogram::UTILIZATION),
            Self::PauseRx(_) | Self::PauseTx(_) => Some(histogram::PAUSE),
            Self::Count(..) => None,
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
