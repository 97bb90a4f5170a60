//! Flow control: who stops whom, for how long, and on which priorities.

use super::board::{Board, Subject};
use super::event::EventKind;
use super::latch::Sample;
use super::link::sum;
use super::{DIRECTIONS, Look};
use crate::Step;
use catalog::{Direction, Index, Signal};

/// When each priority was last in a storm, by direction.
#[derive(Debug, Default)]
pub(super) struct Storms([[Option<u64>; 8]; 2]);

pub(super) fn detect(look: Look<'_>, storms: &mut Storms, board: &mut Board) {
    for (direction, stormed) in DIRECTIONS.into_iter().zip(&mut storms.0) {
        for (priority, stormed) in (0..8).zip(stormed) {
            detect_storm(look, direction, priority, board);
            if board.is_open(storm(direction, priority)) {
                *stormed = Some(look.now);
            }
            // A storm is told as one; what is left of it in the window is not another event.
            let calm = stormed.is_none_or(|at| look.now.saturating_sub(at) >= look.thresholds.storm_grace);
            let ratio = look.port.pause_ratio(direction, priority).filter(|_| calm);
            detect_sustained(look, direction, priority, ratio, board);
            if direction == Direction::Rx {
                detect_without_ce(look, priority, ratio, board);
            }
        }
    }
    detect_storm_by_firmware(look, board);
    detect_drops(look, board);
    for direction in DIRECTIONS {
        let frames: Frames = std::array::from_fn(|priority| frames(look, direction, priority));
        detect_on_lossy(look, direction, &frames, board);
        detect_global(look, direction, &frames, board);
    }
}

fn storm(direction: Direction, priority: u8) -> Subject {
    Subject::of(EventKind::PfcStorm, direction).on(priority)
}

fn detect_storm(look: Look<'_>, direction: Direction, priority: u8, board: &mut Board) {
    // Where PFC was switched off nobody is held any more, and nobody knows whether they would be.
    let has_pfc = look
        .port
        .pfc_mask()
        .is_none_or(|mask| mask & (1 << priority) != 0);
    let step = look.port.pause_step(direction, priority);
    let step = step
        .or_else(|| bound_of_storm(look, direction, priority))
        .filter(|_| has_pfc);
    let sample = step.map_or(Sample::at(look.now, None), |step| Sample {
        began: step.began,
        ended: step.ended,
        value: Some(step.ratio),
    });
    look.feed(board, storm(direction, priority), sample, || {
        [
            ("pause_ratio", sample.value.unwrap_or(0.0)),
            (
                "utilization_tx",
                look.port.utilization(Direction::Tx).unwrap_or(0.0),
            ),
        ]
    });
}

/// The pause of a priority whose driver counts frames alone. They bound its time from above, so that they tell a storm only
/// where the paused side also stands still.
fn bound_of_storm(look: Look<'_>, direction: Direction, priority: u8) -> Option<Step> {
    let bound = look.port.pause_bound_step(direction, priority)?;
    let stopped = match direction {
        Direction::Rx => Direction::Tx,
        Direction::Tx => Direction::Rx,
    };
    let idle = look.port.utilization_step(stopped)?.ratio < look.thresholds.storm_idle;
    let ratio = if idle { bound.ratio } else { 0.0 };
    Some(Step { ratio, ..bound })
}

/// A NIC that watches its own pauses says when its receive pipeline stands still.
fn detect_storm_by_firmware(look: Look<'_>, board: &mut Board) {
    let signals = [Signal::PfcStormWarning, Signal::PfcStormError];
    let told = sum(signals
        .into_iter()
        .filter_map(|signal| look.port.per_second(signal, None)));
    // A storm that its pauses show is told by those, with its priority.
    let told = told.filter(|_| !(0..8).any(|priority| board.is_open(storm(Direction::Tx, priority))));
    look.feed(
        board,
        Subject::of(EventKind::PfcStorm, Direction::Tx),
        Sample::at(look.now, told.map(|told| f64::from(told > 0.0))),
        || [("storm_reports_per_second", told.unwrap_or(0.0))],
    );
}

fn detect_sustained(
    look: Look<'_>,
    direction: Direction,
    priority: u8,
    ratio: Option<f64>,
    board: &mut Board,
) {
    let subject = Subject::of(EventKind::SustainedPause, direction).on(priority);
    look.feed_now(board, subject, ratio, "pause_ratio");
}

fn detect_without_ce(look: Look<'_>, priority: u8, ratio: Option<f64>, board: &mut Board) {
    if !look.thresholds.expect_ecn {
        return;
    }
    let ratio = ratio.and_then(|ratio| {
        let told = ratio > 0.0 && is_told_to_slow_down(look)?;
        Some(if told { 0.0 } else { ratio })
    });
    look.feed_now(
        board,
        Subject::of(EventKind::PauseWithoutCe, Direction::Rx).on(priority),
        ratio,
        "pause_ratio",
    );
}

/// True if CNPs or marks come; `None` of a NIC that counts no CNPs.
fn is_told_to_slow_down(look: Look<'_>) -> Option<bool> {
    let rate = |signal| look.port.per_second(signal, None);
    let cnps = sum([Signal::CnpRx, Signal::CnpRxHandled, Signal::CnpRxIgnored]
        .into_iter()
        .filter_map(rate))?;
    Some(cnps + rate(Signal::EcnRxCe).unwrap_or(0.0) > 0.0)
}

/// PFC frames a second that name each priority.
type Frames = [Option<f64>; 8];

/// Those of one priority; where no others are counted, those that stop it.
fn frames(look: Look<'_>, direction: Direction, priority: usize) -> Option<f64> {
    let (all, xoff) = match direction {
        Direction::Rx => (Signal::PfcRxFrames, Signal::PfcRxXoffFrames),
        Direction::Tx => (Signal::PfcTxFrames, Signal::PfcTxXoffFrames),
    };
    let index = u8::try_from(priority).ok().map(Index::Priority);
    let rate = |signal| look.port.per_second(signal, index);
    rate(all).or_else(|| rate(xoff))
}

fn detect_on_lossy(look: Look<'_>, direction: Direction, frames: &Frames, board: &mut Board) {
    let mask = look.port.pfc_mask();
    let with_pfc = mask.map_or(0, u64::count_ones);
    let meant = look.thresholds.lossless.map(u64::from);
    let too_many = meant.is_none() && with_pfc > look.thresholds.most_lossless;
    // Which of so many are meant nobody can tell; that they are too many can be said of the port.
    let meant = meant.or(if too_many { Some(u64::MAX) } else { mask });
    let all = if too_many {
        sum(frames.iter().copied().flatten())
    } else {
        Some(0.0)
    };
    let subject = Subject::of(EventKind::PauseOnLossyPriority, direction);
    look.feed(board, subject, Sample::at(look.now, all), || {
        [
            ("frames_per_second", all.unwrap_or(0.0)),
            ("priorities_with_pfc", f64::from(with_pfc)),
        ]
    });
    for (priority, frames) in (0..8).zip(frames) {
        let frames = match meant {
            Some(meant) if meant & (1 << priority) != 0 => Some(0.0),
            Some(_) => *frames,
            None => None,
        };
        look.feed_now(board, subject.on(priority), frames, "frames_per_second");
    }
}

fn detect_drops(look: Look<'_>, board: &mut Board) {
    let mask = look.thresholds.lossless.map(u64::from).or(look.port.pfc_mask());
    for priority in 0..8 {
        let lossless = mask.is_some_and(|mask| mask & (1 << priority) != 0);
        let rate = |signal| look.port.per_second(signal, Some(Index::Priority(priority)));
        let drops = sum([Signal::DropRxNoBuffer, Signal::DropRxHostBuffer]
            .into_iter()
            .filter_map(rate));
        look.feed_now(
            board,
            Subject::of(EventKind::DropsOnLosslessPriority, Direction::Rx).on(priority),
            drops.filter(|_| lossless),
            "drops_per_second",
        );
    }
}

fn detect_global(look: Look<'_>, direction: Direction, frames: &Frames, board: &mut Board) {
    let (all, xoff, enabled) = match direction {
        Direction::Rx => (
            Signal::PauseRxFrames,
            Signal::PauseRxXoffFrames,
            Signal::PauseRxEnabled,
        ),
        Direction::Tx => (
            Signal::PauseTxFrames,
            Signal::PauseTxXoffFrames,
            Signal::PauseTxEnabled,
        ),
    };
    let rate = |signal| look.port.per_second(signal, None);
    let global = rate(all).or_else(|| rate(xoff)).map(|paused| {
        if look.port.reading(enabled, None) == Some(0) {
            return 0.0;
        }
        // Some NICs count PFC frames here as well, and do not say so.
        let pfc = sum(frames.iter().copied().flatten());
        (paused - pfc.unwrap_or(0.0)).max(0.0)
    });
    look.feed_now(
        board,
        Subject::of(EventKind::GlobalPause, direction),
        global,
        "frames_per_second",
    );
}
