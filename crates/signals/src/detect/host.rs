//! The host's side: its PCI Express, and whether its counters can be believed.

use super::Look;
use super::board::{Board, Subject};
use super::event::EventKind;
use super::latch::Sample;
use catalog::{Signal, SourceKind};

/// Counters that had begun anew by the last look.
#[derive(Debug, Default)]
pub(super) struct Resets(u64);

pub(super) fn detect(look: Look<'_>, resets: &mut Resets, board: &mut Board) {
    detect_backpressure(look, board);
    detect_reset(look, resets, board);
    detect_frozen(look, board);
    detect_told(look, board);
}

fn detect_backpressure(look: Look<'_>, board: &mut Board) {
    let percent = [Signal::PcieStalledWritePercent, Signal::PcieStalledReadPercent]
        .into_iter()
        .filter_map(|signal| look.port.reading(signal, None))
        .max()
        .map(|percent| percent as f64);
    let drops = look.port.per_second(Signal::PcieOverflowDrops, None);
    let worse = [percent, drops].into_iter().flatten().reduce(f64::max);
    look.feed(
        board,
        Subject::port(EventKind::PcieBackpressure),
        Sample::at(look.now, worse),
        || {
            [
                ("stalled_ratio", percent.unwrap_or(0.0) / 100.0),
                ("drops_per_second", drops.unwrap_or(0.0)),
            ]
        },
    );
}

fn detect_reset(look: Look<'_>, Resets(before): &mut Resets, board: &mut Board) {
    let resets = look.port.quality().resets;
    let new = resets.saturating_sub(*before) as f64;
    *before = resets;
    look.feed_now(
        board,
        Subject::port(EventKind::CounterReset),
        Some(new),
        "counters",
    );
}

fn detect_frozen(look: Look<'_>, board: &mut Board) {
    let frozen = || {
        SourceKind::ALL
            .into_iter()
            .filter(|source| look.port.is_frozen(*source))
    };
    let count = frozen().count() as f64;
    look.feed(
        board,
        Subject::port(EventKind::SourceFrozen),
        Sample::at(look.now, Some(count)),
        || [(frozen().next().map_or("sources", SourceKind::as_str), count)],
    );
}

/// What only the agent knows, who reads.
fn detect_told(look: Look<'_>, board: &mut Board) {
    let facts = look.facts;
    look.feed_now(
        board,
        Subject::port(EventKind::SourceStalled),
        Some(f64::from(facts.stalled.is_some())),
        facts.stalled.map_or("sources", SourceKind::as_str),
    );
    look.feed_now(
        board,
        Subject::port(EventKind::DeviceGone),
        Some(f64::from(facts.gone)),
        "gone",
    );
}
