//! The formulas, as pure functions of rates per second.

/// Bytes on the wire that no driver counts: preamble, start delimiter and gap of each packet (IEEE 802.3).
pub const L1_OVERHEAD_BYTES: u64 = 20;
/// Reading two counters a little apart in time can show a ratio a little above 1; more is another fault.
const JITTER: f64 = 1.05;
/// Bits of time that one PFC frame can pause a class for at most: 65535 quanta of 512 bit times (IEEE 802.1Qbb).
const LONGEST_PAUSE_BITS: f64 = 65_535.0 * 512.0;
/// Below so many packets a share of them says nothing.
pub const LEAST_PACKETS: u64 = 1000;

/// A ratio that cannot be above 1: a little above is jitter and taken for 1, more is implausible and `None`.
#[must_use]
pub fn at_most_one(ratio: f64) -> Option<f64> {
    (0.0..=JITTER).contains(&ratio).then_some(ratio.min(1.0))
}

/// Share of the time that a class was paused, from microseconds of pause per second.
///
/// `None` above 1.05: the source refreshes more slowly than it is read, or counts in another unit.
#[must_use]
pub fn pause(microseconds_per_second: f64) -> Option<f64> {
    at_most_one(microseconds_per_second / 1e6)
}

/// The most that a class can have been paused, from XOFF frames per second at this speed.
#[must_use]
pub fn pause_upper_bound(xoff_per_second: f64, bits_per_second: f64) -> Option<f64> {
    (bits_per_second > 0.0).then(|| (xoff_per_second * LONGEST_PAUSE_BITS / bits_per_second).clamp(0.0, 1.0))
}

/// Share of the line in use, from bytes per second with [`L1_OVERHEAD_BYTES`] a packet.
///
/// `None` above 1.05: the speed or the counter is not what it is taken for.
#[must_use]
pub fn utilization(wire_bytes_per_second: f64, bits_per_second: f64) -> Option<f64> {
    if bits_per_second > 0.0 {
        at_most_one(8.0 * wire_bytes_per_second / bits_per_second)
    } else {
        None
    }
}

/// Share that `part` has of `whole`; `None` of nothing, and above 1.05.
#[must_use]
pub fn share(part: f64, whole: f64) -> Option<f64> {
    if whole > 0.0 {
        at_most_one(part / whole)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_close(found: Option<f64>, right: f64) {
        assert!(
            found.is_some_and(|found| (found - right).abs() < 1e-9),
            "{found:?} is not {right}"
        );
    }

    #[test]
    fn pause_is_time_over_time_and_a_little_jitter_is_one() {
        assert_close(pause(300_000.0), 0.3);
        assert_close(pause(1_040_000.0), 1.0);
        assert_eq!(pause(1_060_000.0), None);
        assert_eq!(pause(-1.0), None);
    }

    #[test]
    fn a_frame_holds_a_class_for_84_microseconds_at_400_gigabits() {
        // 11,921 frames a second hold it all the time; half of them, half of it.
        assert_close(
            pause_upper_bound(11_921.0, 400e9).map(|r| (r * 1e3).round() / 1e3),
            1.0,
        );
        assert_close(
            pause_upper_bound(5_960.5, 400e9).map(|r| (r * 1e3).round() / 1e3),
            0.5,
        );
        assert_close(pause_upper_bound(1e9, 400e9), 1.0);
        assert_eq!(pause_upper_bound(1.0, 0.0), None);
    }

    #[test]
    fn a_line_full_of_roce_packets_is_a_full_line() {
        // RoCEv2 over IPv4 at MTU 4096: 4158 bytes a packet and 20 more on the wire.
        let packets = 400e9 / 8.0 / 4178.0;
        assert_close(utilization(packets * (4158.0 + 20.0), 400e9), 1.0);
        assert_eq!(utilization(60e9, 400e9), None);
        assert_eq!(utilization(1.0, 0.0), None);
    }

    #[test]
    fn a_share_of_nothing_is_nothing() {
        assert_eq!(share(0.0, 0.0), None);
        assert_close(share(1.0, 4.0), 0.25);
        assert_eq!(share(5.0, 4.0), None);
    }

    proptest! {
        #[test]
        fn ratios_are_between_zero_and_one(part in 0.0..1e18, whole in 0.0..1e18) {
            for ratio in [pause(part), pause_upper_bound(part, whole), utilization(part, whole), share(part, whole)] {
                prop_assert!(ratio.is_none_or(|ratio| (0.0..=1.0).contains(&ratio)));
            }
        }
    }
}
