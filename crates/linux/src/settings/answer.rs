//! What the answers of ethtool netlink say.

use super::genl::{Question, attributes};
use crate::netlink::{Attribute, Attributes};
use model::ABSENT;

/// A column of the source, in the order of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Speed,
    Lanes,
    PauseRx,
    PauseTx,
    RxPauseFrames,
    TxPauseFrames,
    FecCorrectedBlocks,
    FecUncorrectableBlocks,
    FecCorrectedBits,
    LinkExtDownCount,
    PfcStormPrevention,
}

impl Fact {
    pub(super) const ALL: [Self; 11] = [
        Self::Speed,
        Self::Lanes,
        Self::PauseRx,
        Self::PauseTx,
        Self::RxPauseFrames,
        Self::TxPauseFrames,
        Self::FecCorrectedBlocks,
        Self::FecUncorrectableBlocks,
        Self::FecCorrectedBits,
        Self::LinkExtDownCount,
        Self::PfcStormPrevention,
    ];

    /// The column's name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Lanes => "lanes",
            Self::PauseRx => "pause_rx",
            Self::PauseTx => "pause_tx",
            Self::RxPauseFrames => "rx_pause_frames",
            Self::TxPauseFrames => "tx_pause_frames",
            Self::FecCorrectedBlocks => "fec_corrected_blocks",
            Self::FecUncorrectableBlocks => "fec_uncorrectable_blocks",
            Self::FecCorrectedBits => "fec_corrected_bits",
            Self::LinkExtDownCount => "link_ext_down_count",
            Self::PfcStormPrevention => "pfc_storm_prevention_ms",
        }
    }
}

/// What was learned of an interface at one time: `None` for what the driver does not tell, [`ABSENT`] for what it
/// tells but does not know now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts([Option<u64>; Fact::ALL.len()]);

impl Facts {
    pub(super) fn get(&self, fact: Fact) -> Option<u64> {
        self.0[fact as usize]
    }

    pub(super) fn set(&mut self, fact: Fact, value: Option<u64>) {
        self.0[fact as usize] = value;
    }

    /// Adds what the answer to `question` says. An attribute of another length than the kernel's is not taken.
    pub(super) fn learn(&mut self, question: Question, payload: &[u8]) {
        let answer = attributes(payload);
        let find = |kind| answer.find_kind(kind);
        match question {
            Question::LinkModes => {
                // ETHTOOL_A_LINKMODES_SPEED, _LANES
                self.set(
                    Fact::Speed,
                    Some(find(5).and_then(|a| a.u32()).map_or(ABSENT, known_speed)),
                );
                self.set(Fact::Lanes, find(9).and_then(number));
            }
            // ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT
            Question::LinkState => self.set(Fact::LinkExtDownCount, find(7).and_then(number)),
            Question::Pause => {
                // ETHTOOL_A_PAUSE_RX, _TX; ETHTOOL_A_PAUSE_STATS with _TX_FRAMES, _RX_FRAMES
                self.set(Fact::PauseRx, find(3).and_then(flag));
                self.set(Fact::PauseTx, find(4).and_then(flag));
                let stats = nest(find(5));
                self.set(Fact::TxPauseFrames, stats.find_kind(2).and_then(|a| a.u64()));
                self.set(Fact::RxPauseFrames, stats.find_kind(3).and_then(|a| a.u64()));
            }
            Question::Fec => {
                // ETHTOOL_A_FEC_STATS with _CORRECTED, _UNCORR, _CORR_BITS
                let stats = nest(find(5));
                self.set(Fact::FecCorrectedBlocks, stats.find_kind(2).and_then(total));
                self.set(Fact::FecUncorrectableBlocks, stats.find_kind(3).and_then(total));
                self.set(Fact::FecCorrectedBits, stats.find_kind(4).and_then(total));
            }
        }
    }
}

/// Megabits per second, [`ABSENT`] for the driver's "unknown" (`SPEED_UNKNOWN`, all ones) and for 0, which no link has.
pub(super) fn known_speed(speed: u32) -> u64 {
    if speed == 0 || speed == u32::MAX {
        ABSENT
    } else {
        speed.into()
    }
}

fn number(attribute: Attribute<'_>) -> Option<u64> {
    attribute.u32().map(Into::into)
}

fn flag(attribute: Attribute<'_>) -> Option<u64> {
    attribute.u8().map(|byte| u64::from(byte != 0))
}

fn nest(attribute: Option<Attribute<'_>>) -> Attributes<'_> {
    Attributes::new(attribute.map_or(&[], |nest| nest.value))
}

/// The first of an array of u64: the port's total, which the kernel makes the sum of the lanes behind it where the
/// driver counts by lane (net/ethtool/fec.c, `fec_stats_recalc`). The array is empty for what the driver lacks.
fn total(attribute: Attribute<'_>) -> Option<u64> {
    let first = attribute
        .value
        .first_chunk::<8>()
        .map(|bytes| u64::from_ne_bytes(*bytes));
    first.filter(|_| attribute.value.len().is_multiple_of(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Request;
    use proptest::prelude::*;

    fn learned(question: Question, request: &Request) -> Facts {
        let mut facts = Facts::default();
        facts.learn(question, request.payload());
        facts
    }

    const GENL: &[u8] = &[4, 1, 0, 0];

    #[test]
    fn speed_is_known_unknown_or_not_told() {
        let modes = |speed: u32| {
            Request::new(20, GENL)
                .with(5, &speed.to_ne_bytes())
                .with(9, &4u32.to_ne_bytes())
        };
        let facts = learned(Question::LinkModes, &modes(400_000));
        assert_eq!(
            (facts.get(Fact::Speed), facts.get(Fact::Lanes)),
            (Some(400_000), Some(4))
        );
        assert_eq!(
            learned(Question::LinkModes, &modes(u32::MAX)).get(Fact::Speed),
            Some(ABSENT)
        );
        assert_eq!(
            learned(Question::LinkModes, &modes(0)).get(Fact::Speed),
            Some(ABSENT)
        );
        let nothing = learned(Question::LinkModes, &Request::new(20, GENL));
        assert_eq!(
            (nothing.get(Fact::Speed), nothing.get(Fact::Lanes)),
            (Some(ABSENT), None)
        );
    }

    #[test]
    fn pause_frames_keep_their_directions() {
        let (tx, rx) = (11u64.to_ne_bytes(), 22u64.to_ne_bytes());
        let pause = Request::new(20, GENL)
            .with(3, &[1])
            .with(4, &[0])
            .with_nest(5, &[(2, &tx), (3, &rx)]);
        let facts = learned(Question::Pause, &pause);
        assert_eq!(
            (facts.get(Fact::PauseRx), facts.get(Fact::PauseTx)),
            (Some(1), Some(0))
        );
        assert_eq!(
            (facts.get(Fact::TxPauseFrames), facts.get(Fact::RxPauseFrames)),
            (Some(11), Some(22))
        );
    }

    #[test]
    fn fec_totals_are_the_first_of_each_array() {
        let array: Vec<u8> = [30u64, 10, 20].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let one = 5u64.to_ne_bytes();
        let fec = Request::new(20, GENL).with_nest(5, &[(2, &array), (3, &one), (4, &array[..7])]);
        let facts = learned(Question::Fec, &fec);
        assert_eq!(facts.get(Fact::FecCorrectedBlocks), Some(30));
        assert_eq!(facts.get(Fact::FecUncorrectableBlocks), Some(5));
        assert_eq!(
            facts.get(Fact::FecCorrectedBits),
            None,
            "seven bytes are no number"
        );
    }

    #[test]
    fn every_fact_is_a_column_of_the_catalogue() {
        for (i, fact) in Fact::ALL.into_iter().enumerate() {
            assert_eq!(fact as usize, i);
            assert!(
                catalog::meaning("any", model::SourceKind::Settings, fact.as_str()).is_some(),
                "{fact:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(bytes: Vec<u8>) {
            for question in [Question::LinkModes, Question::LinkState, Question::Pause, Question::Fec] {
                Facts::default().learn(question, &bytes);
            }
        }
    }
}
