//! What each counter shows of the model.

use crate::columns::has_pfc;
use crate::counted::{CNP_PRIORITY, FCS, Frames, OTHER_PRIORITY, Pause, RDMA_PRIORITY, Totals};
use crate::dcqcn::FLOWS;
use crate::fabric::DATA_FRAME;
use crate::optics::measured;
use crate::rail::Rail;
use catalog::{Index, Signal, SourceKind, Unit, Width};

/// Lanes for which mlx5 shows raw errors, whatever the link has.
pub(crate) const ERROR_LANES: u8 = 4;
/// Of a link that has all of its lanes.
const SPEED_MEGABITS: f64 = 400_000.0;
const LANES: f64 = 4.0;
/// Thousandths of a degree Celsius, which do not change with the traffic.
const CHIP_TEMPERATURE: u64 = 62_000;
const MODULE_TEMPERATURE: u64 = 48_500;
/// The firmware's default time until it stops pausing by itself.
const STORM_PREVENTION_MS: u64 = 8_000;
/// `DCB_CAP_DCBX_HOST` and `DCB_CAP_DCBX_VER_IEEE`.
const DCBX_HOST_IEEE: u64 = 0x01 | 0x08;
const ETS: u64 = 2;
const STRICT: u64 = 0;

/// What `signal` is on `rail` by `source`, in the base unit of counts and bytes, microseconds for pauses; `None` if the NIC
/// cannot tell now.
pub(crate) fn value(rail: &Rail, source: SourceKind, signal: Signal, index: Option<Index>) -> Option<u64> {
    let totals = rail.shown(source);
    traffic(rail, totals, signal, index)
        .or_else(|| pause(rail, totals, signal, index))
        .or_else(|| event(rail, totals, signal, index))
        .map(whole)
        .or_else(|| measured(rail, signal, index))
        .or_else(|| setting(rail, signal, index))
}

/// The class of traffic that an index stands for: the simulated configuration maps priority, class and queue one to one.
fn class(index: Option<Index>) -> Option<usize> {
    match index {
        Some(Index::Priority(class) | Index::TrafficClass(class) | Index::Queue(class)) => {
            Some(usize::from(class))
        }
        _ => None,
    }
}

fn traffic(rail: &Rail, totals: &Totals, signal: Signal, index: Option<Index>) -> Option<f64> {
    let Totals { tx, rx, .. } = totals;
    let header = rail.setup.nic.make().uncounted;
    let discarded = |frames: Frames| frames.bytes - FCS * frames.packets;
    Some(match signal {
        Signal::BytesRx => class(index).map_or_else(|| rx.port_bytes(), |class| rx.priority[class].bytes),
        Signal::BytesTx => class(index).map_or_else(|| tx.port_bytes(), |class| tx.priority[class].bytes),
        Signal::PacketsRx => {
            class(index).map_or_else(|| rx.port_packets(), |class| rx.priority[class].packets)
        }
        Signal::PacketsTx => {
            class(index).map_or_else(|| tx.port_packets(), |class| tx.priority[class].packets)
        }
        Signal::BytesRxRdma | Signal::BytesRxRdmaFw | Signal::BytesRxRdmaGood => rx.rdma_bytes(header),
        Signal::BytesTxRdma | Signal::BytesTxRdmaFw => tx.rdma_bytes(header),
        Signal::PacketsRxRdma | Signal::PacketsRxRdmaUnicast | Signal::PacketsRxUdp => rx.rdma_packets(),
        Signal::PacketsTxRdma | Signal::PacketsTxRdmaUnicast | Signal::PacketsTxUdp => tx.rdma_packets(),
        Signal::BytesRxEth => rx.other_bytes() - discarded(totals.rx_discards),
        Signal::BytesTxEth => tx.other_bytes(),
        Signal::RoceRxWriteRequests => rx.write_requests,
        Signal::RoceTxWriteRequests => tx.write_requests,
        // Towards the next node of the ring, and from the one before.
        Signal::RoceActiveQps => 2.0 * FLOWS,
        Signal::LinkRxBitsTotal => totals.link_bits,
        _ => return None,
    })
}

fn pause(rail: &Rail, totals: &Totals, signal: Signal, index: Option<Index>) -> Option<f64> {
    let (rx, tx) = (totals.rx.pause, totals.tx.pause);
    let refreshed = |pause: Pause| pause.frames - pause.transitions;
    let amount = match signal {
        Signal::PfcRxFrames | Signal::PfcRxFramesTotal => rx.frames,
        Signal::PfcTxFrames | Signal::PfcTxFramesTotal => tx.frames,
        Signal::PfcRxXoffFrames => refreshed(rx),
        Signal::PfcTxXoffFrames => refreshed(tx),
        Signal::PfcRxXonFrames | Signal::PfcRxTransitions => rx.transitions,
        Signal::PfcTxXonFrames | Signal::PfcTxTransitions => tx.transitions,
        Signal::PfcRxPauseDuration => rx.nanoseconds / 1e3,
        Signal::PfcTxPauseDuration => tx.nanoseconds / 1e3,
        _ => return None,
    };
    let paused = index.is_none() || has_pfc(rail.setup.scenario.pfc(), index);
    Some(if paused { amount } else { 0.0 })
}

fn event(rail: &Rail, totals: &Totals, signal: Signal, index: Option<Index>) -> Option<f64> {
    let dropped = totals.rx_discards;
    let of_the_rest = matches!(class(index), None | Some(OTHER_PRIORITY));
    Some(match signal {
        Signal::EcnRxCe => totals.marked,
        Signal::CnpTx => totals.cnps_sent,
        Signal::CnpRx => totals.cnps_handled + totals.cnps_ignored,
        Signal::CnpRxHandled => totals.cnps_handled,
        Signal::CnpRxIgnored => totals.cnps_ignored,

        Signal::RoceAckTimeout => totals.ack_timeouts,
        Signal::RoceRxOutOfSequence | Signal::RoceTxNakSequence => totals.out_of_sequence,
        Signal::RoceRxNakSequence => totals.sequence_naks,
        Signal::RoceRxDuplicate => totals.duplicates,
        Signal::RoceRetransmits => totals.retransmits,
        Signal::RoceRetransmitBytes => totals.retransmits * DATA_FRAME,
        Signal::RoceAdaptiveRetrans => totals.adaptive_retransmissions,
        Signal::RoceRxNoWqe | Signal::RoceTxRnrNak => totals.without_request,
        Signal::RoceRxIcrcErrors => totals.icrc_errors,

        Signal::DropRx | Signal::DropRxNoBuffer if of_the_rest => dropped.packets,
        Signal::DropRxBytes if of_the_rest => dropped.bytes,
        Signal::DropTx | Signal::DropTxLinkDown => totals.tx_discards,
        Signal::BufferRxOverThreshold => totals.over_threshold,
        Signal::PcieStalledWritePercent => rail.stalled_percent,
        Signal::PcieStalledWriteSeconds => totals.stalled_seconds,

        Signal::FecCorrectedBits => totals.fec_corrected_bits,
        Signal::FecCorrectedBlocks => totals.fec_corrected_blocks,
        Signal::FecUncorrectableBlocks => totals.fec_uncorrectable_blocks,
        Signal::LinkRxLaneErrors => totals.fec_corrected_bits / f64::from(ERROR_LANES),
        Signal::LinkRxPcsSymbolErrors | Signal::LinkRxSymbolErrors => totals.symbol_errors,
        Signal::LinkRxCrcErrors => totals.crc_errors,
        Signal::LinkDownEvents | Signal::LinkLocalFaults => totals.link_down,
        Signal::LinkCarrierUp => f64::from(rail.carrier_up),
        Signal::LinkCarrierDown => f64::from(rail.carrier_down),
        _ => return None,
    })
}

/// What does not count: states and settings; 0 for what never happens to this NIC.
fn setting(rail: &Rail, signal: Signal, index: Option<Index>) -> Option<u64> {
    let while_up = |value: f64| rail.carrier.then(|| whole(value * rail.speed));
    match (signal, index) {
        (Signal::LinkUp, _) => Some(u64::from(rail.carrier)),
        (Signal::LinkSpeed, _) => while_up(SPEED_MEGABITS),
        (Signal::LinkLanes, _) => while_up(LANES),
        (Signal::TemperatureChip, _) => Some(CHIP_TEMPERATURE),
        (Signal::TemperatureModule, _) => Some(MODULE_TEMPERATURE),
        (Signal::PfcStormPrevention, _) => Some(STORM_PREVENTION_MS),
        (Signal::ConfigPfcEnabled, _) => Some(u64::from(rail.setup.scenario.pfc())),
        (Signal::ConfigPfcCapable, _) => Some(8),
        (Signal::ConfigDcbx, _) => Some(DCBX_HOST_IEEE),
        (Signal::ConfigPriorityClass, Some(Index::Priority(priority))) => Some(u64::from(priority)),
        (Signal::ConfigClassBandwidth, Some(Index::TrafficClass(class))) => Some(match usize::from(class) {
            OTHER_PRIORITY => 10,
            RDMA_PRIORITY => 90,
            _ => 0,
        }),
        (Signal::ConfigClassAlgorithm, Some(Index::TrafficClass(class))) => {
            Some(if usize::from(class) == CNP_PRIORITY {
                STRICT
            } else {
                ETS
            })
        }
        // As mlx5 sets it when trust is DSCP: eight code points to a priority, so that 26 is 3 and 48 is 6.
        (Signal::ConfigDscpPriority, Some(Index::Dscp(dscp))) => Some(u64::from(dscp / 8)),
        (Signal::ConfigRoceUdpPriority, _) => None,
        _ => Some(0),
    }
}

pub(crate) fn in_unit(value: u64, unit: Unit) -> u64 {
    if unit == Unit::Words { value / 4 } else { value }
}

/// As the hardware's bits hold it.
pub(crate) fn in_width(value: u64, width: Width) -> u64 {
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
