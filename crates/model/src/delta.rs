//! From one reading of a counter to the next: how much it grew, and what a decrease means.

use catalog::Width;

/// No RoCE NIC counts faster than this: minimum-size frames fill 800 Gbit/s at 1.19 × 10⁹ a second
/// (IEEE 802.3: 64 + 20 bytes a frame). A decrease that would need a faster count is not a wrap.
const FASTEST_PER_SECOND: u128 = 2_000_000_000;

/// What happened to a counter between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta {
    /// It grew by so much, over the end of its width perhaps.
    Grew(u64),
    /// It began anew; nobody knows what it counted before and after.
    Reset,
    /// It stands at the largest value of its width and counts no further.
    Saturated,
}

/// The step from `before` to `after`, `elapsed` nanoseconds later, of a counter of this width.
///
/// A counter of fewer than 64 bits that nobody extends wraps if it was in the upper half before and the wrapped step
/// is within what hardware can count in the time; every other decrease is a reset. A 64-bit counter never wraps.
#[must_use]
pub fn step(before: u64, after: u64, width: Width, elapsed: u64) -> Delta {
    if width.saturates && after == width.max() {
        return Delta::Saturated;
    }
    if let Some(grew) = after.checked_sub(before) {
        return Delta::Grew(grew);
    }
    let wraps = width.bits < 64 && !width.extended && !width.saturates;
    if wraps && before <= width.max() && before > width.max() / 2 {
        let grew = width.max() - before + after + 1;
        let possible = u128::from(elapsed) * FASTEST_PER_SECOND / 1_000_000_000;
        if u128::from(grew) <= possible {
            return Delta::Grew(grew);
        }
    }
    Delta::Reset
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn bits(bits: u8) -> Width {
        Width { bits, ..Width::FULL }
    }

    #[test]
    fn growth_is_growth() {
        assert_eq!(step(5, 5, Width::FULL, SECOND), Delta::Grew(0));
        assert_eq!(step(5, 12, Width::FULL, SECOND), Delta::Grew(7));
    }

    #[test]
    fn a_32_bit_counter_wraps() {
        let top = u64::from(u32::MAX);
        assert_eq!(step(top, 0, bits(32), SECOND), Delta::Grew(1));
        assert_eq!(step(top - 9, 5, bits(32), SECOND), Delta::Grew(15));
    }

    #[test]
    fn a_decrease_that_no_hardware_can_count_through_is_a_reset() {
        // From the middle to nothing in a millisecond would be two billion counts.
        assert_eq!(step(1 << 31 | 1, 0, bits(32), SECOND / 1000), Delta::Reset);
        // From the lower half it cannot have wrapped.
        assert_eq!(step(1000, 3, bits(32), SECOND), Delta::Reset);
    }

    #[test]
    fn a_64_bit_or_extended_counter_never_wraps() {
        assert_eq!(step(u64::MAX - 1, 0, Width::FULL, SECOND), Delta::Reset);
        let extended = Width {
            extended: true,
            ..bits(32)
        };
        assert_eq!(step(u64::from(u32::MAX), 0, extended, SECOND), Delta::Reset);
    }

    #[test]
    fn a_saturating_field_stops_at_its_end() {
        let field = Width {
            saturates: true,
            ..bits(8)
        };
        assert_eq!(step(250, 255, field, SECOND), Delta::Saturated);
        assert_eq!(step(255, 255, field, SECOND), Delta::Saturated);
        assert_eq!(step(255, 3, field, SECOND), Delta::Reset);
    }

    proptest! {
        #[test]
        fn a_sum_of_steps_is_the_true_count_through_any_number_of_wraps(
            start in 0..=u64::from(u32::MAX),
            steps in prop::collection::vec(0u64..1_000_000_000, 1..200),
        ) {
            let mut counter = start;
            let mut counted = 0;
            for step_by in &steps {
                let after = (counter + step_by) & u64::from(u32::MAX);
                match step(counter, after, bits(32), SECOND) {
                    Delta::Grew(grew) => counted += grew,
                    other => prop_assert!(false, "{other:?}"),
                }
                counter = after;
            }
            prop_assert_eq!(counted, steps.iter().sum::<u64>());
        }

        #[test]
        fn growth_never_exceeds_what_the_readings_allow(before: u64, after: u64, bits in 1u8..=64, elapsed: u64) {
            let width = Width { bits, ..Width::FULL };
            if let Delta::Grew(grew) = step(before, after, width, elapsed) {
                if after >= before {
                    prop_assert_eq!(grew, after - before);
                } else {
                    prop_assert!(grew <= width.max());
                }
            }
        }
    }
}
