//! What is lost, late, damaged or not answered.

use super::{Confidence, Verdict, per_second, percent};
use crate::finding::Evidence;
use crate::policy::Policy;
use crate::priority::list;
use crate::table::traffic as table;
use crate::window::PortWindow;
use catalog::{Direction, Signal};

/// Packets a second that are too many to be missing, or out of order.
const MISSING: f64 = 10.0;
/// Of packets out of order, the share that comes twice if they were only late.
const TWICE: f64 = 0.1;
/// Share of the time from which pause explains a timeout.
const HELD: f64 = 0.1;
/// Timeouts a second that are not one that happens.
const TIMEOUTS: f64 = 0.1;
/// Drops a second on a lossless priority.
const DROPS: f64 = 1.0;

/// What a port drops on receiving.
const DROPPED: [Signal; 4] = [
    Signal::DropRxNoBuffer,
    Signal::DropRxHostBuffer,
    Signal::DropRx,
    Signal::PcieOverflowDrops,
];
/// The ways in which damage is counted.
const DAMAGED: [(Signal, &str); 4] = [
    (Signal::LinkRxCrcErrors, "CRC errors"),
    (Signal::LinkRxPcsSymbolErrors, "symbol errors"),
    (Signal::FecUncorrectableBlocks, "uncorrectable code words"),
    (Signal::RoceRxIcrcErrors, "ICRC errors"),
];

pub(super) fn look(window: &PortWindow, policy: &Policy, found: &mut Vec<Verdict>) {
    timeouts(window, found);
    order(window, found);
    drops(window, policy, found);
    damage(window, found);
}

fn missing(window: &PortWindow) -> Option<f64> {
    window.sum(&[Signal::RoceRxOutOfSequence, Signal::RoceRxNakSequence])
}

/// What was lost at this port; `None` if it counts nothing of the kind.
fn lost_here(window: &PortWindow) -> Option<f64> {
    let damaged = DAMAGED.map(|(signal, _)| signal);
    let dropped = window.sum_of_all(&DROPPED);
    match (dropped, window.sum(&damaged)) {
        (None, None) => None,
        (dropped, damaged) => Some(dropped.unwrap_or(0.0) + damaged.unwrap_or(0.0)),
    }
}

fn is_steady(window: &PortWindow) -> bool {
    window
        .sum(&[Signal::LinkCarrierDown, Signal::LinkDownEvents])
        .is_none_or(|downs| downs <= 0.0)
}

fn timeouts(window: &PortWindow, found: &mut Vec<Verdict>) {
    let (Some(timeouts), Some(missing), Some(lost)) = (
        window.sum(&[Signal::RoceAckTimeout, Signal::RoceRetryExceeded]),
        missing(window),
        lost_here(window),
    ) else {
        return;
    };
    let pauses = [Direction::Rx, Direction::Tx].map(|direction| window.longest_pause(direction));
    let is_held = pauses.iter().flatten().any(|(_, ratio)| *ratio >= HELD);
    if timeouts < TIMEOUTS || missing > 0.0 || lost > 0.0 || is_held || !is_steady(window) {
        return;
    }
    let exceeded = window.rate(Signal::RoceRetryExceeded).filter(|rate| *rate > 0.0);
    let mut said = vec![
        per_second("timeouts", timeouts),
        per_second("packets out of sequence", missing),
        per_second("packets lost at this port", lost),
    ];
    said.extend(exceeded.map(|rate| Evidence::new("connections given up", format!("{rate:.2}/s"))));
    for (what, signal) in [
        ("RDMA packets sent", Signal::PacketsTxRdma),
        ("RDMA packets received", Signal::PacketsRxRdma),
    ] {
        said.extend(window.rate(signal).map(|rate| per_second(what, rate)));
    }
    let verdict = Verdict::of(
        &table::TIMEOUTS_WITHOUT_LOSS,
        window,
        Confidence::if_seen(exceeded.is_some()),
        said,
    );
    found.push(verdict.or(&[
        "a peer that crashed, or whose process ended without closing its connections",
        "no route to the peer's subnet, or a gateway that does not answer",
        "another GID index or RoCE version at the peer",
        "loss of every packet of a flow on the way, which leaves no gap in the sequence",
    ]));
}

fn order(window: &PortWindow, found: &mut Vec<Verdict>) {
    let (Some(missing), Some(lost)) = (window.rate(Signal::RoceRxOutOfSequence), lost_here(window)) else {
        return;
    };
    if missing < MISSING || lost > 0.0 || !is_steady(window) {
        return;
    }
    let twice = window.rate(Signal::RoceRxDuplicate);
    let mut said = vec![
        per_second("packets out of sequence", missing),
        per_second("packets lost at this port", lost),
    ];
    said.extend(twice.map(|twice| per_second("requests that came twice", twice)));
    said.extend(
        window
            .rate(Signal::RoceAckTimeout)
            .map(|rate| per_second("timeouts", rate)),
    );
    let is_late = twice.is_some_and(|twice| twice >= TWICE * missing);
    let verdict = if is_late {
        Verdict::of(&table::REORDERING, window, Confidence::Medium, said).or(&[
            "loss in the fabric together with acknowledgements that were lost, after which requests come twice",
            "a peer whose timeout is too short, so that it repeats what is still on its way",
        ])
    } else {
        let confidence = if twice.is_some() {
            Confidence::Medium
        } else {
            Confidence::Low
        };
        Verdict::of(&table::LOSS_ELSEWHERE, window, confidence, said).or(&[
            "packets that overtook each other (packet spraying, adaptive routing)",
            "a NIC that drops without counting",
        ])
    };
    found.push(verdict);
}

fn drops(window: &PortWindow, policy: &Policy, found: &mut Vec<Verdict>) {
    let Some(mask) = policy.lossless_of(window.pfc) else {
        return;
    };
    for priority in list(mask) {
        let drops = [Signal::DropRxNoBuffer, Signal::DropRxHostBuffer]
            .into_iter()
            .filter_map(|signal| window.rate_of(signal, priority))
            .reduce(|a, b| a + b);
        let frames = window
            .rate_of(Signal::PfcTxFrames, priority)
            .or_else(|| window.rate_of(Signal::PfcTxXoffFrames, priority));
        // The other half of the evidence: whether this port said stop.
        let (Some(drops), Some(frames)) = (drops.filter(|drops| *drops >= DROPS), frames) else {
            continue;
        };
        let mut said = vec![
            per_second(format!("drops on priority {priority}"), drops),
            per_second("PFC frames sent on it", frames),
        ];
        let sent = window.pause(Direction::Tx, priority);
        said.extend(sent.map(|ratio| percent("pause sent on it", ratio)));
        let verdict = Verdict::of(&table::DROPS_ON_LOSSLESS, window, Confidence::High, said).on(priority);
        found.push(verdict.or(if frames > 0.0 {
            &[
                "a receive buffer without headroom for the cable",
                "a switch that does not heed PFC on this priority",
                "frames without a receive request (a netdev's ring), which are not RoCE",
            ]
        } else {
            &[
                "PFC that is not in force on this port, though it is configured",
                "frames without a receive request (a netdev's ring), which are not RoCE",
            ]
        }));
    }
}

fn damage(window: &PortWindow, found: &mut Vec<Verdict>) {
    let counted: Vec<_> = DAMAGED
        .into_iter()
        .filter_map(|(signal, name)| Some((name, window.rate(signal).filter(|rate| *rate > 0.0)?)))
        .collect();
    let crc = window.rate(Signal::LinkRxCrcErrors).filter(|rate| *rate > 0.0);
    let stomped = window.rate(Signal::LinkRxStompedCrc);
    if let (Some(crc), Some(stomped)) = (crc, stomped)
        && stomped * 2.0 >= crc
    {
        let said = vec![
            per_second("CRC errors", crc),
            per_second("of them stomped by a switch", stomped),
        ];
        let verdict = Verdict::of(&table::DAMAGED_ELSEWHERE, window, Confidence::High, said);
        found.push(verdict.or(&["a switch that stomps frames which it cannot forward in time"]));
        return;
    }
    let gaps = missing(window).filter(|rate| *rate > 0.0);
    let ways = counted.len() + usize::from(gaps.is_some());
    // A link that goes down damages what is on it.
    if counted.is_empty() || ways < 2 || !is_steady(window) {
        return;
    }
    let mut said: Vec<_> = counted
        .iter()
        .map(|(name, rate)| per_second(*name, *rate))
        .collect();
    said.extend(gaps.map(|rate| per_second("packets out of sequence", rate)));
    let bits = window.rate(Signal::FecCorrectedBits);
    said.extend(bits.map(|rate| per_second("bits corrected by FEC", rate)));
    let verdict = Verdict::of(
        &table::BAD_RECEIVE_PATH,
        window,
        Confidence::if_seen(counted.len() >= 2),
        said,
    );
    found.push(verdict.or(&[
        "the transmitter at the other end",
        "dirt on a connector, a cable that is bent, a module that is too hot",
        "a FEC mode that is too weak for the cable",
    ]));
}
