//! ECN: marks, the CNPs that answer them, and the senders that heed those.

use super::board::{Board, Subject};
use super::event::EventKind;
use super::latch::Sample;
use super::link::sum;
use super::{DIRECTIONS, Look};
use crate::ratio::LEAST_PACKETS;
use catalog::{Direction, Signal};

/// What a port usually has, from its own past.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usual {
    mean: f64,
    /// For how long there was something to learn from, up to the memory, in nanoseconds.
    learned: u64,
    last: Option<u64>,
}

impl Usual {
    /// Takes in a value; one that is `None` teaches nothing.
    fn learn(&mut self, now: u64, value: Option<f64>, memory: u64) {
        let elapsed = self.last.map_or(0, |last| now.saturating_sub(last));
        self.last = value.map(|_| now);
        let Some(value) = value.filter(|_| elapsed > 0) else {
            return;
        };
        self.learned = self.learned.saturating_add(elapsed).min(memory);
        // Of the first values the plain mean, later one that forgets.
        self.mean += (value - self.mean) * (elapsed as f64 / self.learned as f64).min(1.0);
    }
}

pub(super) fn detect(look: Look<'_>, usual: &mut [Usual; 2], board: &mut Board) {
    for (direction, usual) in DIRECTIONS.into_iter().zip(usual) {
        detect_spike(look, direction, usual, board);
    }
    detect_unanswered(look, board);
    detect_ignored(look, board);
}

/// CNPs a second, and packets of the traffic that they are about: received ones slow what this node sends, sent ones answer
/// what it receives.
fn cnps_and_packets(look: Look<'_>, direction: Direction) -> Option<(f64, f64)> {
    let rate = |signal| look.port.per_second(signal, None);
    match direction {
        Direction::Rx => {
            let told_apart = [Signal::CnpRxHandled, Signal::CnpRxIgnored];
            let cnps = rate(Signal::CnpRx).or_else(|| sum(told_apart.into_iter().filter_map(rate)));
            cnps.zip(rate(Signal::PacketsTxRdma))
        }
        Direction::Tx => rate(Signal::CnpTx).zip(rate(Signal::PacketsRxRdma)),
    }
}

fn detect_spike(look: Look<'_>, direction: Direction, usual: &mut Usual, board: &mut Board) {
    let thresholds = look.thresholds;
    // A share of next to nothing says nothing: it is no spike, and teaches nothing.
    let seen = cnps_and_packets(look, direction);
    let now = seen
        .filter(|(_, packets)| *packets >= LEAST_PACKETS as f64)
        .map(|(cnps, packets)| cnps / packets);
    let normal = usual.mean.max(thresholds.cnp_usual);
    let times = seen
        .filter(|_| usual.learned >= thresholds.cnp_learning)
        .map(|_| now.unwrap_or(0.0) / normal);
    look.feed(
        board,
        Subject::of(EventKind::CnpSpike, direction),
        Sample::at(look.now, times),
        || {
            [
                ("cnps_per_packet", now.unwrap_or(0.0)),
                ("usual_cnps_per_packet", normal),
            ]
        },
    );
    usual.learn(look.now, now, thresholds.cnp_memory);
}

fn detect_unanswered(look: Look<'_>, board: &mut Board) {
    let rate = |signal| look.port.per_second(signal, None);
    let unanswered = rate(Signal::EcnRxCe)
        .zip(rate(Signal::CnpTx))
        .map(|(marks, cnps)| if cnps > 0.0 { 0.0 } else { marks });
    look.feed_now(
        board,
        Subject::port(EventKind::CeWithoutCnp),
        unanswered,
        "marks_per_second",
    );
}

fn detect_ignored(look: Look<'_>, board: &mut Board) {
    let ignored = look.port.per_second(Signal::CnpRxIgnored, None);
    let share = ignored.and_then(|ignored| {
        if ignored < look.thresholds.cnp_ignored_least {
            Some(0.0)
        } else {
            look.port.cnp_ignored_ratio()
        }
    });
    look.feed(
        board,
        Subject::of(EventKind::CnpIgnored, Direction::Rx),
        Sample::at(look.now, share),
        || {
            [
                ("ignored_ratio", share.unwrap_or(0.0)),
                ("ignored_per_second", ignored.unwrap_or(0.0)),
            ]
        },
    );
}
