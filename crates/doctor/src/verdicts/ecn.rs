//! Marks, CNPs, and who listens.

use super::{Confidence, Verdict, per_second, percent};
use crate::finding::Evidence;
use crate::policy::Policy;
use crate::table::traffic as table;
use crate::window::PortWindow;
use catalog::{Direction, Signal};
use signals::ratio::LEAST_PACKETS;

/// Pause that ECN ought to have prevented, and a standstill, in which nothing is sent that could be marked.
const PAUSED: f64 = 0.02;
const STANDSTILL: f64 = 0.9;
/// CNPs per sent packet that are hardly any.
const HARDLY_ANY: f64 = 1e-5;
/// Share of marked packets that is much, of the line that is little, and pause that is none.
const MARKED: f64 = 0.01;
const HALF: f64 = 0.5;
const UNPAUSED: f64 = 0.001;
/// Marks a second that ought to have an answer.
const MARKS: f64 = 10.0;
/// Share of CNPs, and CNPs a second, that may not be ignored.
const IGNORED: f64 = 0.01;
const IGNORED_LEAST: f64 = 100.0;
/// Least time between two CNPs of a flow where the NIC does not tell: N of DCQCN (Zhu et al., SIGCOMM 2015), in seconds.
const INTERVAL: f64 = 50e-6;

pub(super) fn look(window: &PortWindow, policy: &Policy, found: &mut Vec<Verdict>) {
    if !policy.wants_ecn() {
        return;
    }
    without_marks(window, found);
    too_early(window, found);
    unanswered(window, found);
    ignored(window, found);
    at_maximum(window, found);
}

fn without_marks(window: &PortWindow, found: &mut Vec<Verdict>) {
    let (Some((priority, paused)), Some(cnps), Some(packets)) = (
        window.longest_pause(Direction::Rx),
        window.cnps_received(),
        window.rate(Signal::PacketsTxRdma),
    ) else {
        return;
    };
    let marks = window.rate(Signal::EcnRxCe);
    if (PAUSED..STANDSTILL).contains(&paused)
        && packets >= LEAST_PACKETS as f64
        && cnps <= HARDLY_ANY * packets
    {
        let mut said = vec![
            percent(format!("pause received on priority {priority}"), paused),
            per_second("CNPs received", cnps),
            per_second("RDMA packets sent", packets),
        ];
        said.extend(marks.map(|marks| per_second("marks received", marks)));
        let confidence = Confidence::if_seen(marks.is_some_and(|marks| marks <= HARDLY_ANY * packets));
        let verdict = Verdict::of(&table::PAUSE_WITHOUT_ECN, window, confidence, said).on(priority);
        found.push(verdict.or(&[
            "ECN thresholds of the switches above those of PFC",
            "RoCE in another queue of the switches than the one that marks",
            "CNPs that are dropped on their way back",
            "a fabric that is meant to work without ECN: congestion = \"pfc_only\"",
        ]));
    }
}

fn too_early(window: &PortWindow, found: &mut Vec<Verdict>) {
    let pauses = [Direction::Rx, Direction::Tx].map(|direction| window.longest_pause(direction));
    let (Some(marked), Some(used), [Some(rx), Some(tx)]) =
        (window.marked(), window.utilization(Direction::Rx), pauses)
    else {
        return;
    };
    if marked >= MARKED && used < HALF && rx.1.max(tx.1) < UNPAUSED {
        let said = vec![
            percent("received packets that are marked", marked),
            percent("line used, received", used),
            percent("longest pause", rx.1.max(tx.1)),
        ];
        let verdict = Verdict::of(&table::ECN_THRESHOLD_LOW, window, Confidence::Medium, said);
        found.push(verdict.or(&[
            "bursts that fill the queue for moments, which a window does not show",
            "congestion on a link between switches, which is not this port's line",
        ]));
    }
}

fn unanswered(window: &PortWindow, found: &mut Vec<Verdict>) {
    if let (Some(marks), Some(cnps)) = (window.rate(Signal::EcnRxCe), window.rate(Signal::CnpTx))
        && marks >= MARKS
        && cnps <= 0.0
    {
        let said = vec![per_second("marks received", marks), per_second("CNPs sent", cnps)];
        let verdict = Verdict::of(&table::CE_WITHOUT_CNP, window, Confidence::High, said);
        found.push(verdict.or(&[
            "marks on a priority whose notification point is off",
            "a NIC that answers in another way than with CNPs (its own congestion control)",
        ]));
    }
}

fn ignored(window: &PortWindow, found: &mut Vec<Verdict>) {
    let rate = |signal| window.rate(signal);
    let (Some(ignored), Some(handled)) = (rate(Signal::CnpRxIgnored), rate(Signal::CnpRxHandled)) else {
        return;
    };
    let share = ignored / (ignored + handled);
    if ignored >= IGNORED_LEAST && share >= IGNORED {
        let said = vec![
            per_second("CNPs ignored", ignored),
            per_second("CNPs handled", handled),
            percent("share that is ignored", share),
        ];
        let verdict = Verdict::of(&table::CNP_IGNORED, window, Confidence::High, said);
        found.push(verdict.or(&[
            "CNPs for connections that have just been closed",
            "CNPs that arrive on another priority than the NIC expects",
        ]));
    }
}

fn at_maximum(window: &PortWindow, found: &mut Vec<Verdict>) {
    // What a driver counts as active is nearer to the flows than all that there are.
    let active = window.reading(Signal::RoceActiveRcQps);
    let flows = active.or(window.flows.map(|flows| flows as f64));
    let (Some(flows), Some(cnps)) = (flows.filter(|flows| *flows > 0.0), window.cnps_received()) else {
        return;
    };
    let interval = window.cnp_interval.filter(|interval| *interval > 0.0);
    let most = 1.0 / interval.unwrap_or(INTERVAL);
    if cnps / flows >= most / 2.0 {
        let said = vec![
            per_second("CNPs received", cnps),
            Evidence::new("queue pairs", format!("{flows}")),
            per_second("CNPs of each", cnps / flows),
            per_second("most that one flow can get", most),
        ];
        let confidence = if interval.is_some() {
            Confidence::Medium
        } else {
            Confidence::Low
        };
        let verdict = Verdict::of(&table::CNP_AT_MAXIMUM, window, confidence, said);
        found.push(verdict.or(&[
            "receivers that are set to send CNPs more often than this node's NIC",
            "CNPs of a NIC's own slow restart",
        ]));
    }
}
