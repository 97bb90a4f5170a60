//! What is usual, and what is news.

/// So many times the highest before, or less than the lowest by as much, is out of range …
const MARGIN: f64 = 2.0;
/// … if it is by so many a second: an interval of something rare may have none or several.
pub(crate) const LEAST: f64 = 10.0;

/// True if a value, or a rate, is out of the range of the lowest and the highest before, by at least `least`.
pub(crate) fn is_outside(now: f64, (low, high): (f64, f64), least: f64) -> bool {
    (now > high * MARGIN && now - high >= least) || (now < low / MARGIN && low - now >= least)
}

#[cfg(test)]
mod tests {
    use super::{LEAST, is_outside};

    #[test]
    fn twice_the_highest_and_half_the_lowest_are_the_limits() {
        for (rate, outside) in [
            (0.0, true),
            (49.0, true),
            (51.0, false),
            (399.0, false),
            (401.0, true),
        ] {
            assert_eq!(is_outside(rate, (100.0, 200.0), LEAST), outside, "{rate}");
        }
        // What happens now and then may happen no more, or a few times.
        let rare = |rate| is_outside(rate, (0.5, 2.0), LEAST);
        assert!(!rare(0.0) && !rare(7.0) && rare(13.0));
    }
}
