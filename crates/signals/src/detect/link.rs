//! The link: carrier, speed, bit errors, and what its transport lost.

use super::board::{Board, Subject};
use super::event::EventKind;
use super::latch::Sample;
use super::thresholds::Thresholds;
use super::{Look, PortFacts};
use crate::PortSignals;
use catalog::Signal;
use std::collections::VecDeque;

/// More lost carriers than this within the window are not told apart.
const MOST_LOSSES: usize = 64;

/// What packets went missing by: each of these grows for a reason, and on a lossless fabric that rests none does.
const ERRORS: [Signal; 7] = [
    Signal::RoceAckTimeout,
    Signal::RoceRetryExceeded,
    Signal::RoceRnrRetryExceeded,
    Signal::RoceRetransmits,
    Signal::RoceRxOutOfSequence,
    Signal::RoceRxNakSequence,
    Signal::RoceRxIcrcErrors,
];

/// What is remembered about a link.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// It is there now; `None` if nobody can tell.
    up: Option<bool>,
    /// It has been there before.
    was_up: bool,
    /// How often its carrier had been lost by the last look.
    losses: Option<u64>,
    /// When it was lost, the newest last.
    lost_at: VecDeque<u64>,
    /// It was lost since the last look.
    lost_now: bool,
    /// When it was last seen without carrier.
    restless: Option<u64>,
    highest_speed: f64,
}

impl Link {
    /// Takes in what the port tells. What happens in the `grace` of a start is no loss that counts.
    pub(super) fn look(
        &mut self,
        now: u64,
        port: &PortSignals,
        facts: &PortFacts,
        thresholds: &Thresholds,
        grace: bool,
    ) {
        let losses = port.reading(Signal::LinkCarrierDown, None);
        let new = losses
            .zip(self.losses)
            .map_or(0, |(after, before)| after.saturating_sub(before));
        self.losses = losses.or(self.losses);
        self.lost_now = new > 0 && !grace;
        if self.lost_now {
            self.remember(now, new);
        }
        let old = now.saturating_sub(thresholds.link_flap_window);
        while self.lost_at.front().is_some_and(|at| *at < old) {
            self.lost_at.pop_front();
        }
        self.up = port.reading(Signal::LinkUp, None).map(|up| up != 0);
        self.was_up |= facts.known_up || self.up == Some(true);
        if new > 0 || self.up == Some(false) {
            self.restless = Some(now);
        }
        self.highest_speed = self.highest_speed.max(port.speed().unwrap_or(0.0));
    }

    fn remember(&mut self, now: u64, losses: u64) {
        for _ in 0..losses.min(MOST_LOSSES as u64) {
            if self.lost_at.len() == MOST_LOSSES {
                self.lost_at.pop_front();
            }
            self.lost_at.push_back(now);
        }
    }

    /// True if the link has not been without carrier for `grace`.
    pub(super) fn rests(&self, now: u64, grace: u64) -> bool {
        self.restless.is_none_or(|at| now.saturating_sub(at) >= grace)
    }

    pub(super) fn detect(&self, look: Look<'_>, board: &mut Board) {
        self.detect_carrier(look, board);
        self.detect_speed(look, board);
        detect_fec(look, board);
        let errors = sum(ERRORS
            .into_iter()
            .filter_map(|signal| look.port.per_second(signal, None)));
        look.feed_now(
            board,
            Subject::port(EventKind::TransportErrors),
            errors,
            "errors_per_second",
        );
    }

    fn detect_carrier(&self, look: Look<'_>, board: &mut Board) {
        let lost = self.lost_at.len() as f64;
        let down = self.up.filter(|_| self.was_up).map(|up| !up || self.lost_now);
        look.feed_now(
            board,
            Subject::port(EventKind::LinkDown),
            down.map(f64::from),
            "carrier_lost",
        );
        let subject = Subject::port(EventKind::LinkFlap);
        // The flapping began with its first loss, not with the one that makes it enough, and ended with the last.
        let began = self.lost_at.front().copied().or(self.restless);
        let sample = Sample {
            began: began.unwrap_or(look.now),
            ended: look.now,
            value: self.losses.map(|_| lost),
        };
        look.feed(board, subject, sample, || [("carrier_losses", lost)]);
    }

    fn detect_speed(&self, look: Look<'_>, board: &mut Board) {
        let usual = look.facts.usual_speed.unwrap_or(self.highest_speed);
        let speed = look.port.speed().filter(|speed| *speed > 0.0);
        let missing = speed.filter(|_| usual > 0.0).map(|speed| 1.0 - speed / usual);
        look.feed(
            board,
            Subject::port(EventKind::SpeedBelowUsual),
            Sample::at(look.now, missing),
            || {
                [
                    ("bits_per_second", speed.unwrap_or(0.0)),
                    ("usual_bits_per_second", usual),
                ]
            },
        );
    }
}

fn detect_fec(look: Look<'_>, board: &mut Board) {
    let rate = |signal| look.port.per_second(signal, None);
    // What correction leaves over is lost; where nothing is corrected, the checksum of the frame tells.
    let lost = rate(Signal::FecUncorrectableBlocks).or_else(|| rate(Signal::LinkRxCrcErrors));
    let corrected = rate(Signal::FecCorrectedBits);
    let bit_errors = corrected
        .zip(look.port.speed())
        .filter(|(_, speed)| *speed > 0.0)
        .map(|(corrected, speed)| corrected / speed);
    let shares = [
        lost.map(|lost| lost / look.thresholds.fec_lost),
        bit_errors.map(|errors| errors / look.thresholds.fec_bit_errors),
    ];
    let worse = shares.into_iter().flatten().reduce(f64::max);
    look.feed(
        board,
        Subject::port(EventKind::FecDegraded),
        Sample::at(look.now, worse),
        || {
            [
                ("lost_per_second", lost.unwrap_or(0.0)),
                ("bit_error_ratio", bit_errors.unwrap_or(0.0)),
            ]
        },
    );
}

/// The sum of what there is; `None` of nothing.
pub(super) fn sum(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(|sum, value| sum + value)
}
