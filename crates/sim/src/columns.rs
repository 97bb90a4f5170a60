//! Which counters a source of the simulated NIC has, and what each of them shows of the model.
//!
//! The names come from the catalogue; the model knows signals alone.

use crate::counted::RDMA_PRIORITY;
use crate::rail::Rail;
use catalog::{Entry, Index, Kind, Meaning, Per, Signal, SourceKind, Unit};
use model::ABSENT;

/// The driver of every NIC.
pub(crate) const DRIVER: &str = "mlx5_core";

/// Lanes for which mlx5 shows raw errors, whatever the link has.
const LANES_WITH_ERRORS: u8 = 4;
const SPEED_MEGABITS: u64 = 400_000;
const LANES: u64 = 4;
/// Thousandths of a degree Celsius, which do not change with the traffic.
const CHIP_TEMPERATURE: u64 = 62_000;
const MODULE_TEMPERATURE: u64 = 48_500;
/// The firmware's default time until it stops pausing by itself.
const STORM_PREVENTION_MS: u64 = 8_000;
/// `DCB_CAP_DCBX_HOST` and `DCB_CAP_DCBX_VER_IEEE`.
const DCBX_HOST_IEEE: u64 = 0x01 | 0x08;
const ETS: u64 = 2;
const STRICT: u64 = 0;

/// One column of a source.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// The counter's name.
    pub(crate) name: String,
    meaning: Meaning,
    /// Another counter of the source already carries the signal: unicast and multicast are parts of a sum, and all
    /// that the model sends is unicast.
    rest: bool,
}

impl Cell {
    /// What the counter reads on `rail`.
    pub(crate) fn read(&self, rail: &Rail) -> u64 {
        if self.rest {
            return 0;
        }
        value(rail, self.meaning.signal(), self.meaning.index).map_or(ABSENT, |value| {
            in_width(in_unit(value, self.meaning.entry.unit), self.meaning)
        })
    }
}

/// The columns of a source of `rail`; none if the NIC does not have the source.
pub(crate) fn cells(source: SourceKind) -> Vec<Cell> {
    // What needs a right that this process may not have is not there either.
    if matches!(source, SourceKind::Module | SourceKind::Verbs) {
        return Vec::new();
    }
    let mut cells: Vec<Cell> = Vec::new();
    for (name, meaning) in names(source).filter(|(_, meaning)| shown(meaning)) {
        let same =
            |cell: &Cell| (cell.meaning.signal(), cell.meaning.index) == (meaning.signal(), meaning.index);
        let rest = cells.iter().any(same);
        // Counters of one signal are parts of a sum. A second sensor of one signal is another port's.
        if !rest || meaning.entry.kind != Kind::Gauge {
            cells.push(Cell { name, meaning, rest });
        }
    }
    cells
}

/// Every counter that the catalogue knows for the driver in `source`, patterns expanded.
fn names(source: SourceKind) -> impl Iterator<Item = (String, Meaning)> {
    catalog::DRIVERS
        .iter()
        .filter(|driver| driver.bound_as.iter().any(|name| *name == DRIVER || *name == "*"))
        .flat_map(|driver| driver.entries)
        .filter(move |entry| entry.source == source)
        .flat_map(expand)
}

fn expand(entry: &'static Entry) -> Vec<(String, Meaning)> {
    type Kind = (&'static str, u8, fn(u8) -> Index);
    const PLACEHOLDERS: [Kind; 5] = [
        ("{prio}", 8, Index::Priority),
        ("{tc}", 8, Index::TrafficClass),
        ("{q}", 8, Index::Queue),
        ("{lane}", 8, Index::Lane),
        ("{dscp}", 64, Index::Dscp),
    ];
    let Some((placeholder, count, index)) = PLACEHOLDERS.into_iter().find(|kind| entry.name.contains(kind.0))
    else {
        return vec![(entry.name.to_owned(), Meaning { entry, index: None })];
    };
    (0..count)
        .map(|i| {
            (
                entry.name.replace(placeholder, &i.to_string()),
                Meaning {
                    entry,
                    index: Some(index(i)),
                },
            )
        })
        .collect()
}

/// Whether a NIC in the simulated configuration has the counter: PFC on one priority, no global pause, no switchdev,
/// no optional counter switched on, a released kernel.
///
/// Frames of global pause are the exception: the catalogue has two entries alike for them, of which a NIC without global
/// pause shows one, and nothing tells which. Both are there, and stay 0.
fn shown(meaning: &Meaning) -> bool {
    let Meaning { entry, index } = *meaning;
    if entry.optional {
        return false;
    }
    match (entry.source, entry.signal) {
        (
            SourceKind::Ethtool,
            Signal::PfcRxFrames
            | Signal::PfcTxFrames
            | Signal::PfcRxPauseDuration
            | Signal::PfcTxPauseDuration
            | Signal::PfcRxTransitions,
        ) => on_rdma_priority(index),
        (
            SourceKind::Ethtool,
            Signal::PauseRxPauseDuration
            | Signal::PauseTxPauseDuration
            | Signal::PauseRxTransitions
            | Signal::LinkRxBitsTotal,
        ) => false,
        (SourceKind::Ethtool, Signal::LinkRxLaneErrors) => {
            matches!(index, Some(Index::Lane(lane)) if lane < LANES_WITH_ERRORS)
        }
        (SourceKind::HwCounters, _) => entry.per != Per::Function,
        // Of these a host reads traffic alone: each costs a firmware command, and ethtool has the errors.
        (SourceKind::PortCounters, signal) => matches!(
            signal,
            Signal::BytesRxRdma | Signal::BytesTxRdma | Signal::PacketsRxRdma | Signal::PacketsTxRdma
        ),
        _ => true,
    }
}

fn on_rdma_priority(index: Option<Index>) -> bool {
    priority(index) == Some(RDMA_PRIORITY)
}

fn priority(index: Option<Index>) -> Option<usize> {
    match index {
        Some(Index::Priority(priority)) => Some(usize::from(priority)),
        _ => None,
    }
}

/// What `signal` is on `rail`, in the base unit of counts and bytes, microseconds for pauses; `None` if the NIC cannot
/// tell now.
fn value(rail: &Rail, signal: Signal, index: Option<Index>) -> Option<u64> {
    let counted = &rail.counted;
    let amount = match signal {
        Signal::PfcRxFrames if on_rdma_priority(index) => rail.rx.pause.frames,
        Signal::PfcTxFrames if on_rdma_priority(index) => rail.tx.pause.frames,
        Signal::PfcRxPauseDuration if on_rdma_priority(index) => rail.rx.pause.nanoseconds / 1e3,
        Signal::PfcTxPauseDuration if on_rdma_priority(index) => rail.tx.pause.nanoseconds / 1e3,
        Signal::PfcRxTransitions if on_rdma_priority(index) => rail.rx.pause.transitions,

        Signal::BytesRx => priority(index).map_or(rail.rx.port_bytes(), |p| rail.rx.priority[p].bytes),
        Signal::BytesTx => priority(index).map_or(rail.tx.port_bytes(), |p| rail.tx.priority[p].bytes),
        Signal::PacketsRx => priority(index).map_or(rail.rx.port_packets(), |p| rail.rx.priority[p].packets),
        Signal::PacketsTx => priority(index).map_or(rail.tx.port_packets(), |p| rail.tx.priority[p].packets),
        Signal::BytesRxRdma => rail.rx.rdma_bytes(),
        Signal::BytesTxRdma => rail.tx.rdma_bytes(),
        Signal::PacketsRxRdma | Signal::PacketsRxRdmaUnicast => rail.rx.rdma_packets(),
        Signal::PacketsTxRdma | Signal::PacketsTxRdmaUnicast => rail.tx.rdma_packets(),
        Signal::BytesRxEth => rail.rx.other_bytes(),
        Signal::BytesTxEth => rail.tx.other_bytes(),

        Signal::EcnRxCe => counted.marked,
        Signal::CnpTx => counted.cnps_sent,
        Signal::CnpRxHandled => counted.cnps_handled,

        Signal::RoceRxWriteRequests => counted.write_requests,
        Signal::RoceAckTimeout => counted.ack_timeouts,
        Signal::RoceRxOutOfSequence => counted.out_of_sequence,
        Signal::RoceRxNakSequence => counted.sequence_naks,
        Signal::RoceRxDuplicate => counted.duplicates,
        Signal::RoceAdaptiveRetrans => counted.adaptive_retransmissions,

        Signal::DropTx => counted.tx_discards,
        Signal::BufferRxOverThreshold => counted.over_threshold,
        Signal::PcieStalledWritePercent => rail.stalled_percent,
        Signal::PcieStalledWriteSeconds => counted.stalled_seconds,

        Signal::FecCorrectedBits => counted.fec_corrected_bits,
        Signal::FecCorrectedBlocks => counted.fec_corrected_blocks,
        Signal::LinkRxLaneErrors => counted.fec_corrected_bits / f64::from(LANES_WITH_ERRORS),
        Signal::LinkRxPcsSymbolErrors => counted.symbol_errors,
        Signal::LinkDownEvents => counted.link_down,
        Signal::LinkCarrierUp => counted.carrier_up,
        Signal::LinkCarrierDown => counted.carrier_down,

        _ => return setting(rail, signal, index),
    };
    Some(whole(amount))
}

/// What does not count: states and settings; 0 for what never happens to this NIC.
fn setting(rail: &Rail, signal: Signal, index: Option<Index>) -> Option<u64> {
    let while_up = |value| rail.carrier.then_some(value);
    match (signal, index) {
        (Signal::LinkUp, _) => Some(u64::from(rail.carrier)),
        (Signal::LinkSpeed, _) => while_up(SPEED_MEGABITS),
        (Signal::LinkLanes, _) => while_up(LANES),
        (Signal::TemperatureChip, _) => Some(CHIP_TEMPERATURE),
        (Signal::TemperatureModule, _) => Some(MODULE_TEMPERATURE),
        (Signal::PfcStormPrevention, _) => Some(STORM_PREVENTION_MS),
        (Signal::ConfigPfcEnabled, _) => Some(1 << RDMA_PRIORITY),
        (Signal::ConfigPfcCapable, _) => Some(8),
        (Signal::ConfigDcbx, _) => Some(DCBX_HOST_IEEE),
        (Signal::ConfigPriorityClass, Some(Index::Priority(priority))) => Some(u64::from(priority)),
        (Signal::ConfigClassBandwidth, Some(Index::TrafficClass(class))) => Some(match class {
            0 => 10,
            3 => 90,
            _ => 0,
        }),
        (Signal::ConfigClassAlgorithm, Some(Index::TrafficClass(class))) => {
            Some(if class == 6 { STRICT } else { ETS })
        }
        // As mlx5 sets it when trust is DSCP: eight code points to a priority, so that 26 is 3 and 48 is 6.
        (Signal::ConfigDscpPriority, Some(Index::Dscp(dscp))) => Some(u64::from(dscp / 8)),
        (Signal::ConfigRoceUdpPriority, _) => None,
        _ => Some(0),
    }
}

fn in_unit(value: u64, unit: Unit) -> u64 {
    if unit == Unit::Words { value / 4 } else { value }
}

/// As the hardware's bits hold it.
fn in_width(value: u64, meaning: Meaning) -> u64 {
    let width = meaning.entry.width;
    if width.saturates {
        value.min(width.max())
    } else if width.extended {
        value
    } else {
        value & width.max()
    }
}

/// What a counter shows of an amount: whole things.
// An amount is never negative and stays below 2^64 for centuries; the cast drops the part that is not yet whole.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn whole(amount: f64) -> u64 {
    amount as u64
}
