//! Windows made by hand.

use crate::made_cases::{all, innocent};
use catalog::{Direction, Index, Signal};
use doctor::{Confidence, Policy, PortName, PortWindow, Verdict, verdicts};
use model::{DeviceId, PortId};
use proptest::prelude::*;

/// A rail under a training job: 80 % of a 400G line, nothing wrong, every counter there.
pub(crate) fn rail(number: u8) -> PortWindow {
    let mut window = PortWindow::new(PortName {
        id: PortId {
            device: DeviceId::pci(&format!("0000:{number:02x}:00.0")),
            number: 1,
        },
        device: format!("mlx5_{number}"),
        netdev: Some(format!("rail{number}")),
    });
    window.speed = Some(400e9);
    window.pfc = Some(0b1000);
    for signal in [Signal::PacketsRxRdma, Signal::PacketsTxRdma] {
        window.set(signal, None, 9e6);
    }
    for signal in [
        Signal::EcnRxCe,
        Signal::CnpTx,
        Signal::CnpRxHandled,
        Signal::CnpRxIgnored,
        Signal::RoceAckTimeout,
        Signal::RoceRetryExceeded,
        Signal::RoceRxOutOfSequence,
        Signal::RoceRxNakSequence,
        Signal::RoceRxDuplicate,
        Signal::RoceRxIcrcErrors,
        Signal::LinkRxCrcErrors,
        Signal::LinkRxPcsSymbolErrors,
        Signal::FecUncorrectableBlocks,
        Signal::LinkCarrierDown,
        Signal::DropRxNoBuffer,
    ] {
        window.set(signal, None, 0.0);
    }
    for signal in [Signal::DropRxNoBuffer, Signal::PfcTxFrames] {
        window.set(signal, Some(Index::Priority(3)), 0.0);
    }
    for direction in [Direction::Rx, Direction::Tx] {
        window.set_utilization(direction, 0.8);
        window.set_pause(direction, 3, 0.0);
    }
    window
}

pub(crate) fn rails() -> Vec<PortWindow> {
    (0..4).map(rail).collect()
}

fn ids(found: &[Verdict]) -> Vec<&'static str> {
    let mut ids: Vec<_> = found.iter().map(|verdict| verdict.check.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[test]
fn each_traffic_gives_its_verdict_and_no_other() {
    for case in all() {
        let mut windows = rails();
        (case.change)(&mut windows);
        let found = verdicts(&windows, &Policy::default());
        assert_eq!(ids(&found), case.checks, "{}", case.name);
        for verdict in found {
            assert!(verdict.evidence.len() >= 2, "{}: one counter alone", case.name);
            assert!(!verdict.otherwise.is_empty(), "{}", case.name);
        }
    }
}

#[test]
fn what_only_looks_like_it_gives_none() {
    assert_eq!(ids(&verdicts(&rails(), &Policy::default())), Vec::<&str>::new());
    for (name, change) in innocent() {
        let mut windows = rails();
        change(&mut windows);
        assert_eq!(
            ids(&verdicts(&windows, &Policy::default())),
            Vec::<&str>::new(),
            "{name}"
        );
    }
}

#[test]
fn what_corroborates_makes_it_surer() {
    let mut windows = rails();
    windows[0].set_pause(Direction::Tx, 3, 0.3);
    let sure = |windows: &[PortWindow]| verdicts(windows, &Policy::default())[0].confidence;
    assert_eq!(sure(&windows), Confidence::Medium);
    let mut without_buffers = windows.clone();
    without_buffers[0].set(Signal::DropRxHostBuffer, None, 200.0);
    assert_eq!(sure(&without_buffers), Confidence::High);
    windows[0].set(Signal::PcieSlotCorrectable, None, 4.0);
    assert_eq!(sure(&windows), Confidence::High);
}

#[test]
fn without_ecn_in_the_policy_nothing_is_said_of_it() {
    let policy = Policy {
        congestion: doctor::Congestion::PfcOnly,
        ..Policy::default()
    };
    let mut windows = rails();
    windows[0].set_pause(Direction::Rx, 3, 0.04);
    windows[1].set(Signal::EcnRxCe, None, 1e5);
    assert_eq!(ids(&verdicts(&windows, &policy)), Vec::<&str>::new());
}

const SIGNALS: [Signal; 12] = [
    Signal::EcnRxCe,
    Signal::CnpTx,
    Signal::CnpRxHandled,
    Signal::CnpRxIgnored,
    Signal::RoceAckTimeout,
    Signal::RoceRetryExceeded,
    Signal::RoceRxOutOfSequence,
    Signal::RoceRxIcrcErrors,
    Signal::LinkRxCrcErrors,
    Signal::FecUncorrectableBlocks,
    Signal::DropRxNoBuffer,
    Signal::PcieOverflowDrops,
];

proptest! {
    /// Of a port of which one counter alone is known nothing is said, whatever it counts.
    #[test]
    fn one_counter_alone_gives_no_verdict(at in 0..SIGNALS.len(), rate in 0.0..1e9) {
        let mut window = PortWindow::new(rail(0).port);
        window.set(SIGNALS[at], None, rate);
        prop_assert_eq!(verdicts(&[window], &Policy::default()), Vec::new());
    }

    #[test]
    fn any_rates_are_judged(rates in proptest::collection::vec(proptest::option::of(0.0..1e9), SIGNALS.len()), rx in 0.0..1.0, tx in 0.0..1.0, used in 0.0..1.0) {
        let mut windows = rails();
        for (signal, rate) in SIGNALS.into_iter().zip(rates) {
            if let Some(rate) = rate {
                windows[0].set(signal, None, rate);
            }
        }
        windows[0].set_pause(Direction::Rx, 3, rx);
        windows[0].set_pause(Direction::Tx, 3, tx);
        windows[0].set_utilization(Direction::Tx, used);
        for verdict in verdicts(&windows, &Policy::default()) {
            prop_assert!(verdict.evidence.len() >= 2);
        }
    }
}
