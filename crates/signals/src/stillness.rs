//! Firmware that answers with the same values for ever.
//!
//! A read that succeeds proves nothing: bnxt's driver, after one failed query, hands out the last values for good, and a
//! firmware may hang behind a cache. What proves it is a counter that moved with nearly every sample, and now has not
//! for minutes, while the port's traffic goes on by the word of somebody else.

use catalog::Signal;
use model::{ABSENT, Column, Schema, SourceKind};

/// A counter that has moved in so many samples moves with the traffic.
const LIVELY: u8 = 100;
/// How long it has to stand still, in nanoseconds: longer than the pauses of a training step, or of a checkpoint.
const PATIENCE: u64 = 120_000_000_000;
/// Packets that have to pass meanwhile: an idle node is not a broken one, and keep-alives are not traffic.
const TRAFFIC: u64 = 1_000_000;

/// Packets by the word of the counters that firmware has no part in, or of other sources.
pub(crate) const PACKETS: [Signal; 4] = [
    Signal::PacketsRxRdma,
    Signal::PacketsTxRdma,
    Signal::PacketsRx,
    Signal::PacketsTx,
];

/// What is known about the standing still of one source.
pub(crate) struct Stillness {
    /// In how many samples each counter has moved, up to [`LIVELY`]; of what firmware has no part in, always 0.
    moves: Box<[u8]>,
    counts: Box<[bool]>,
    /// When one that moves with the traffic last did.
    since: Option<u64>,
    /// Packets that the port had by then.
    packets: u64,
    frozen: bool,
}

impl Stillness {
    pub(crate) fn of(schema: &Schema) -> Self {
        // The queue pairs of one process may rest while others carry the port's traffic.
        let all_traffic = schema.source != SourceKind::QpCounters;
        let counts = |column: &Column| {
            let firmware = column
                .meaning
                .is_none_or(|meaning| !meaning.entry.without_firmware);
            all_traffic && column.counts && firmware
        };
        Self {
            moves: vec![0; schema.columns.len()].into(),
            counts: schema.columns.iter().map(counts).collect(),
            since: None,
            packets: 0,
            frozen: false,
        }
    }

    /// Takes in the row read at `now`. `packets` are those of the port by another's word, and `None` if nobody else
    /// has one.
    pub(crate) fn row(&mut self, now: u64, before: &[u64], row: &[u64], packets: Option<u64>) {
        let mut moved = false;
        for (at, (old, new)) in before.iter().zip(row).enumerate() {
            if self.counts[at] && old != new && *old != ABSENT {
                self.moves[at] = self.moves[at].saturating_add(1).min(LIVELY);
                moved |= self.moves[at] == LIVELY;
            }
        }
        let packets = packets.unwrap_or(self.packets);
        if moved {
            (self.since, self.packets, self.frozen) = (Some(now), packets, false);
            return;
        }
        let still = self
            .since
            .is_some_and(|since| now.saturating_sub(since) >= PATIENCE);
        self.frozen = still && packets.saturating_sub(self.packets) >= TRAFFIC;
    }

    /// True if the firmware's values no longer are those of the hardware.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// True if that makes the value of this column worthless.
    pub(crate) fn hides(&self, column: usize) -> bool {
        self.frozen && self.counts[column]
    }
}
