//! What a cable does to the bits on it.

use crate::counted::Totals;
use crate::fabric::LINE;
use crate::rng::Rng;

/// Bits of a code word of RS(544,514), which 100 Gb/s a lane uses: 544 symbols of 10 bits (IEEE 802.3 clause 91).
const CODE_WORD: f64 = 5_440.0;
/// Corrected bits for each bit received over a bad cable.
const BAD_RATE: f64 = 1e-4;
/// Code words of a bad cable with more errors than can be corrected.
const BAD_WORDS: f64 = 1e-6;

/// The cable of a port.
#[derive(Clone, Debug)]
pub(crate) struct Cable {
    /// Corrected bits for each bit received while it is well.
    rate: f64,
}

impl Cable {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self {
            rate: rng.between(0.4e-8, 3e-8),
        }
    }

    /// Counts what `seconds` of a link at `share` of [`LINE`] bring, used or idle, and gives the code words that were lost.
    pub(crate) fn carry(&self, totals: &mut Totals, seconds: f64, share: f64, bad: bool) -> f64 {
        let bits = seconds * LINE * 8.0 * share;
        let words = bits / CODE_WORD;
        let (rate, lost) = if bad {
            (BAD_RATE, words * BAD_WORDS)
        } else {
            (self.rate, 0.0)
        };
        totals.link_bits += bits;
        totals.fec_corrected_bits += bits * rate;
        // Where bits fall over independently, this share of the words has at least one that did.
        totals.fec_corrected_blocks += words * (1.0 - (-rate * CODE_WORD).exp());
        totals.fec_uncorrectable_blocks += lost;
        totals.symbol_errors += lost;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_cable_corrects_and_loses_nothing() {
        let cable = Cable { rate: 1e-8 };
        let mut totals = Totals::default();
        assert!(cable.carry(&mut totals, 1.0, 1.0, false) <= 0.0);
        assert!((totals.fec_corrected_bits - 4_000.0).abs() < 1e-6);
        // Two of these bits hardly ever meet in one word.
        assert!((3_999.0..4_000.0).contains(&totals.fec_corrected_blocks));
    }

    #[test]
    fn a_bad_cable_loses_words_at_any_load() {
        let mut totals = Totals::default();
        let lost = Cable { rate: 1e-8 }.carry(&mut totals, 1.0, 0.5, true);
        assert!((lost - 200e9 / 5_440.0 * 1e-6).abs() < 1e-6);
        assert!(totals.fec_corrected_blocks < 200e9 / 5_440.0);
    }
}
