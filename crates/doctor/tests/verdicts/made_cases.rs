//! Traffic with something wrong, and traffic that only looks like it.

use catalog::{Direction, Index, Signal};
use doctor::PortWindow;

pub(crate) type Change = fn(&mut [PortWindow]);

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The verdicts, by name.
    pub(crate) checks: Vec<&'static str>,
    pub(crate) change: Change,
}

fn case(name: &'static str, checks: &[&'static str], change: Change) -> Case {
    Case {
        name,
        checks: checks.to_vec(),
        change,
    }
}

fn set(windows: &mut [PortWindow], rates: &[(Signal, f64)]) {
    for &(signal, rate) in rates {
        windows[0].set(signal, None, rate);
    }
}

fn use_lines(windows: &mut [PortWindow], shares: [f64; 4]) {
    for (window, share) in windows.iter_mut().zip(shares) {
        window.set_utilization(Direction::Tx, share);
        window.set_utilization(Direction::Rx, share);
    }
}

#[allow(clippy::too_many_lines)] // a list
pub(crate) fn all() -> Vec<Case> {
    vec![
        case("held by the fabric", &["fabric_pauses"], |windows| {
            windows[0].set_pause(Direction::Rx, 3, 0.3);
            set(windows, &[(Signal::CnpRxHandled, 1e5)]);
        }),
        case("a standstill", &["fabric_pauses"], |windows| {
            for window in windows.iter_mut() {
                window.set_pause(Direction::Rx, 3, 1.0);
                window.set(Signal::PacketsTxRdma, None, 0.0);
                window.set(Signal::PacketsRxRdma, None, 0.0);
            }
            use_lines(windows, [0.0; 4]);
        }),
        case("a slow host", &["host_is_slow"], |windows| {
            windows[0].set_pause(Direction::Tx, 3, 0.3);
        }),
        case("pause on all priorities", &["pause_on_lossy"], |windows| {
            windows[0].pfc = Some(0xff);
            windows[0].set_pause(Direction::Rx, 0, 0.01);
        }),
        case(
            "pause and no ECN",
            &["fabric_pauses", "pause_without_ecn"],
            |windows| {
                windows[0].set_pause(Direction::Rx, 3, 0.3);
            },
        ),
        case("a threshold that is too low", &["ecn_threshold_low"], |windows| {
            use_lines(windows, [0.3; 4]);
            set(windows, &[(Signal::EcnRxCe, 5e5), (Signal::CnpTx, 1e5)]);
        }),
        case("marks without an answer", &["ce_without_cnp"], |windows| {
            set(windows, &[(Signal::EcnRxCe, 5e4)]);
        }),
        case("CNPs without effect", &["cnp_ignored"], |windows| {
            set(
                windows,
                &[(Signal::CnpRxHandled, 1e4), (Signal::CnpRxIgnored, 1e3)],
            );
        }),
        case("CNPs as fast as can be", &["cnp_at_maximum"], |windows| {
            windows[0].flows = Some(8);
            windows[0].cnp_interval = Some(50e-6);
            set(windows, &[(Signal::CnpRxHandled, 1.2e5)]);
        }),
        case("port 4791 blocked", &["timeouts_without_loss"], |windows| {
            set(
                windows,
                &[(Signal::RoceAckTimeout, 20.0), (Signal::RoceRetryExceeded, 3.0)],
            );
        }),
        case("late packets", &["reordering"], |windows| {
            set(
                windows,
                &[(Signal::RoceRxOutOfSequence, 1e4), (Signal::RoceRxDuplicate, 5e3)],
            );
        }),
        case("lost packets", &["loss_elsewhere"], |windows| {
            set(
                windows,
                &[(Signal::RoceRxOutOfSequence, 1e3), (Signal::RoceRxDuplicate, 3.0)],
            );
        }),
        case("drops on priority 3", &["drops_on_lossless"], |windows| {
            windows[0].set(Signal::DropRxNoBuffer, Some(Index::Priority(3)), 50.0);
        }),
        case(
            "drops on priority 3 in spite of pause",
            &["drops_on_lossless", "host_is_slow"],
            |windows| {
                windows[0].set(Signal::DropRxNoBuffer, Some(Index::Priority(3)), 50.0);
                windows[0].set(Signal::PfcTxFrames, Some(Index::Priority(3)), 5e4);
                windows[0].set_pause(Direction::Tx, 3, 0.2);
            },
        ),
        case("uneven rails", &["uneven_rails"], |windows| {
            use_lines(windows, [0.8, 0.2, 0.8, 0.2]);
        }),
        case("a bad cable", &["bad_receive_path"], |windows| {
            set(
                windows,
                &[
                    (Signal::LinkRxCrcErrors, 5.0),
                    (Signal::FecUncorrectableBlocks, 6.0),
                ],
            );
        }),
        case("a bad cable and gaps", &["bad_receive_path"], |windows| {
            set(
                windows,
                &[
                    (Signal::LinkRxCrcErrors, 50.0),
                    (Signal::RoceRxOutOfSequence, 40.0),
                ],
            );
        }),
        case("a bad cable elsewhere", &["damaged_elsewhere"], |windows| {
            set(
                windows,
                &[(Signal::LinkRxCrcErrors, 50.0), (Signal::LinkRxStompedCrc, 49.0)],
            );
        }),
        case("a driver that counts nothing", &["cannot_tell"], |windows| {
            let mut blind = PortWindow::new(windows[0].port.clone());
            blind.set(Signal::PacketsTxRdma, None, 1e6);
            windows[0] = blind;
        }),
    ]
}

/// Traffic that is busy, or odd, and in order.
pub(crate) fn innocent() -> Vec<(&'static str, Change)> {
    vec![
        ("a healthy DCQCN under incast", |windows| {
            windows[0].set_pause(Direction::Rx, 3, 0.004);
            set(
                windows,
                &[
                    (Signal::EcnRxCe, 2e5),
                    (Signal::CnpTx, 2e4),
                    (Signal::CnpRxHandled, 3e4),
                ],
            );
        }),
        ("pause both ways alike", |windows| {
            windows[0].set_pause(Direction::Rx, 3, 0.06);
            windows[0].set_pause(Direction::Tx, 3, 0.05);
            set(windows, &[(Signal::CnpRxHandled, 1e4)]);
        }),
        ("one direction of pause is not known", |windows| {
            let mut window = PortWindow::new(windows[0].port.clone());
            window.set_pause(Direction::Rx, 3, 0.5);
            windows[0] = window;
        }),
        ("timeouts of a link that went down", |windows| {
            set(
                windows,
                &[(Signal::RoceAckTimeout, 20.0), (Signal::LinkCarrierDown, 0.1)],
            );
        }),
        ("timeouts while the fabric holds the node", |windows| {
            windows[0].set_pause(Direction::Rx, 3, 0.3);
            windows[0].set_pause(Direction::Tx, 3, 0.3);
            set(
                windows,
                &[(Signal::RoceAckTimeout, 20.0), (Signal::CnpRxHandled, 1e5)],
            );
        }),
        ("a timeout an hour", |windows| {
            set(windows, &[(Signal::RoceAckTimeout, 1.0 / 3600.0)]);
        }),
        ("CRC errors alone", |windows| {
            set(windows, &[(Signal::LinkRxCrcErrors, 0.2)]);
        }),
        ("a few ignored CNPs", |windows| {
            set(
                windows,
                &[(Signal::CnpRxHandled, 1e5), (Signal::CnpRxIgnored, 20.0)],
            );
        }),
        ("an idle node with one busy rail", |windows| {
            use_lines(windows, [0.1, 0.0, 0.0, 0.0]);
        }),
        ("many CNPs of many flows", |windows| {
            windows[0].flows = Some(512);
            set(windows, &[(Signal::CnpRxHandled, 1.2e5)]);
        }),
        ("PFC on three priorities that are all used", |windows| {
            windows[0].pfc = Some(0b11_1000);
            windows[0].set_pause(Direction::Rx, 5, 0.01);
        }),
    ]
}
