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

/// The same of each priority, of which there are [`PRIORITIES`].
const COUNTS_BY_PRIORITY: [Signal; 6] = [
    Signal::PfcRxFrames,
    Signal::PfcTxFrames,
    Signal::PfcRxXoffFrames,
    Signal::PfcTxXoffFrames,
    Signal::DropRxNoBuffer,
    Signal::DropRxHostBuffer,
];

/// 802.1p.
const PRIORITIES: usize = 8;
/// What comes before the pauses in [`Quantity::all`], and before what is counted by priority.
const FIRST_PAUSE: usize = 2 + COUNTS.len();
const FIRST_BY_PRIORITY: usize = FIRST_PAUSE + 2 * PRIORITIES;

/// Where each signal is in a list, by its number.
#[allow(clippy::cast_possible_truncation)] // the lists are short
const fn places<const N: usize>(list: [Signal; N]) -> [Option<u8>; Signal::COUNT] {
    let mut places = [None; Signal::COUNT];
    let mut at = 0;
    while at < N {
        places[list[at] as usize] = Some(at as u8);
        at += 1;
    }
    places
}

static PLACES: [Option<u8>; Signal::COUNT] = places(COUNTS);
static PLACES_BY_PRIORITY: [Option<u8>; Signal::COUNT] = places(COUNTS_BY_PRIORITY);

/// What a step between two samples shows.
pub(crate) enum Sample {
    Ratio(f64),
    Implausible,
    /// Nothing that is observed sample by sample, or not without the speed.
    None,
}

impl Quantity {
    /// How many there are.
    pub(crate) const KINDS: usize = FIRST_BY_PRIORITY + PRIORITIES * COUNTS_BY_PRIORITY.len();

    /// Its position in [`Quantity::all`]; `None` of a signal that is not followed.
    pub(crate) fn place(self) -> Option<usize> {
        let priority = |priority: u8| (usize::from(priority) < PRIORITIES).then_some(usize::from(priority));
        match self {
            Self::WireRx => Some(0),
            Self::WireTx => Some(1),
            Self::Count(signal, None) => Some(2 + usize::from(PLACES[signal as usize]?)),
            Self::PauseRx(p) => Some(FIRST_PAUSE + 2 * priority(p)?),
            Self::PauseTx(p) => Some(FIRST_PAUSE + 2 * priority(p)? + 1),
            Self::Count(signal, Some(Index::Priority(p))) => {
                let signal = usize::from(PLACES_BY_PRIORITY[signal as usize]?);
                Some(FIRST_BY_PRIORITY + PRIORITIES * signal + priority(p)?)
            }
            Self::Count(_, Some(_)) => None,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_at_its_place() {
        let places: Vec<_> = Quantity::all().map(Quantity::place).collect();
        let right: Vec<_> = (0..Quantity::KINDS).map(Some).collect();
        assert_eq!(places, right);
    }

    #[test]
    fn what_is_not_followed_has_no_place() {
        let ce = |index| Quantity::Count(Signal::EcnRxCe, index).place();
        assert_eq!(ce(Some(Index::Priority(3))), None);
        assert_eq!(ce(Some(Index::TrafficClass(3))), None);
        assert_eq!(Quantity::Count(Signal::LinkUp, None).place(), None);
        assert_eq!(Quantity::xoff(Direction::Rx, 8).place(), None);
        assert_eq!(Quantity::pause(Direction::Tx, 8).place(), None);
    }
}
