//! How often a source is read: as often as wanted, as long as reading stays within its share of the node's time.

/// What is believed of a read's cost at once, in nanoseconds. What takes longer is rather a firmware that hangs: after three
/// reads of a minute each, to believe it would be not to look again for hours.
const CREDIBLE: u64 = 100_000_000;

/// The cadence of one source.
#[derive(Clone, Debug)]
pub(super) struct Cadence {
    /// Wanted interval in nanoseconds.
    wanted: u64,
    /// What a read costs, in nanoseconds: a moving average that one outlier cannot move far, and no less than what most of
    /// the last reads took.
    cost: u64,
    /// What the last reads took, as far as it is credible; 0 before there were so many.
    recent: [u64; 5],
}

impl Cadence {
    pub(super) fn new(wanted: u64) -> Self {
        Self {
            wanted,
            cost: 0,
            recent: [0; 5],
        }
    }

    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// What a read costs, in nanoseconds.
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Takes in what a read cost. A single read that hung for a minute says nothing of the next, so a sample moves the average
    /// by at most four times the estimate (or a millisecond). Reads that became slower for good are believed with the
    /// third: the estimate is never below the median of five. Back it goes by the average alone, an eighth a read.
    pub(super) fn observe(&mut self, cost: u64) {
        self.recent.rotate_left(1);
        self.recent[4] = cost.clamp(1, CREDIBLE);
        if self.cost == 0 {
            self.cost = self.recent[4];
            return;
        }
        let sample = cost.min(self.cost.saturating_mul(4).max(1_000_000));
        let average = self.cost - self.cost / 8 + sample / 8;
        self.cost = average.max(self.median()).max(1);
    }

    fn median(&self) -> u64 {
        let mut sorted = self.recent;
        sorted.sort_unstable();
        sorted[2]
    }
}

/// The last beat up to `time`: a whole multiple of `interval`. Sources that are read on the beat are read together, on one
/// wake of their lane, and all lanes at once, so that the deriver finds their rows together.
pub(super) fn on_the_beat(time: u64, interval: u64) -> u64 {
    time - time % interval
}

/// The shortest interval at which a lane may read any of its sources so that all of them together take no more than
/// `duty` of wall time. Sources that are wanted less often keep their interval: the fastest are stretched first.
///
/// `cadences` is sorted by wanted interval.
pub(super) fn floor<'a>(cadences: impl DoubleEndedIterator<Item = &'a Cadence> + Clone, duty: f64) -> u64 {
    debug_assert!(cadences.clone().is_sorted_by_key(Cadence::wanted));
    let load = |cadence: &Cadence| cadence.cost as f64 / cadence.wanted as f64;
    let mut kept: f64 = cadences.clone().map(load).sum();
    if kept <= duty {
        return 0;
    }
    let mut stretched_cost = 0.0;
    let mut rest = cadences.peekable();
    while let Some(cadence) = rest.next() {
        kept -= load(cadence);
        stretched_cost += cadence.cost as f64;
        let floor = stretched_cost / (duty - kept);
        let fits = rest.peek().is_none_or(|next| floor <= next.wanted as f64);
        if duty > kept && fits {
            return to_nanos(floor);
        }
    }
    to_nanos(stretched_cost / duty)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a positive number of nanoseconds; `as` saturates
fn to_nanos(value: f64) -> u64 {
    value.ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn with_cost(wanted: u64, cost: u64) -> Cadence {
        let mut cadence = Cadence::new(wanted);
        cadence.observe(cost);
        cadence
    }

    #[test]
    fn sources_that_were_opened_apart_are_read_together_from_their_second_read_on() {
        let interval = 100 * MS;
        let seconds = [1_003, 1_041, 1_099].map(|first| on_the_beat(first * MS + interval, interval));
        assert_eq!(seconds, [1_100 * MS; 3]);
        assert_eq!(on_the_beat(seconds[0] + interval, interval), 1_200 * MS);
    }

    #[test]
    fn cheap_sources_are_read_as_often_as_wanted() {
        assert_eq!(floor([with_cost(100 * MS, MS / 2)].iter(), 0.01), 0);
    }

    #[test]
    fn a_dear_source_is_stretched_until_it_fits() {
        // 2 ms at 1 % of the time: every 200 ms.
        assert_eq!(floor([with_cost(100 * MS, 2 * MS)].iter(), 0.01), 200 * MS);
    }

    #[test]
    fn slow_facts_keep_their_interval_while_fast_ones_are_stretched() {
        // Eight NICs at 2 ms under rtnl with 0.2 %, beside facts of 1 ms every 30 s.
        let mut lane = vec![with_cost(200 * MS, 2 * MS); 8];
        lane.push(with_cost(30_000 * MS, MS));
        let floor = floor(lane.iter(), 0.002);
        assert!((8_000 * MS..8_200 * MS).contains(&floor), "{floor}");
    }

    #[test]
    fn one_read_that_hung_does_not_stretch_the_interval_for_long() {
        let mut cadence = with_cost(100 * MS, MS);
        cadence.observe(60_000 * MS);
        assert!(cadence.cost < 2 * MS, "{}", cadence.cost);
    }

    /// A source that has cost a millisecond for long.
    fn settled() -> Cadence {
        let mut cadence = with_cost(100 * MS, MS);
        for _ in 0..10 {
            cadence.observe(MS);
        }
        cadence
    }

    /// The estimate after each of these reads, in milliseconds, rounded down.
    fn estimates(cadence: &mut Cadence, reads: &[u64]) -> Vec<u64> {
        let observe = |read: &u64| {
            cadence.observe(read * MS);
            cadence.cost / MS
        };
        reads.iter().map(observe).collect()
    }

    #[test]
    fn a_lasting_rise_is_believed_with_the_third_read() {
        let mut cadence = settled();
        assert_eq!(estimates(&mut cadence, &[50; 6]), [1, 1, 50, 50, 50, 50]);
        // Young sources are no more credulous.
        let mut young = with_cost(100 * MS, MS);
        assert_eq!(estimates(&mut young, &[50; 3]), [1, 1, 50]);
    }

    #[test]
    fn one_slow_read_or_two_are_no_rise() {
        for slow in [50, 60_000] {
            let mut cadence = settled();
            let reads = [slow, 1, 1, 1, 1, slow, slow, 1, 1, 1];
            let estimates = estimates(&mut cadence, &reads);
            assert!(estimates.iter().all(|estimate| *estimate < 3), "{estimates:?}");
        }
    }

    #[test]
    fn a_rise_with_fast_reads_in_between_is_one() {
        let estimates = estimates(&mut settled(), &[50, 1, 50, 1, 50, 50, 1, 50]);
        assert_eq!(estimates[4..], [50; 4]);
    }

    #[test]
    fn falling_back_is_slower_than_rising() {
        let mut cadence = settled();
        estimates(&mut cadence, &[50; 5]);
        let falling = estimates(&mut cadence, &[1; 40]);
        assert_eq!(falling[..2], [50; 2]);
        assert!(falling.is_sorted_by(|a, b| a >= b), "{falling:?}");
        assert!(falling[6] > 25 && falling[39] <= 2, "{falling:?}");
    }

    #[test]
    fn a_firmware_that_hangs_three_times_is_looked_at_again_soon() {
        let mut cadence = settled();
        estimates(&mut cadence, &[60_000; 3]);
        assert!(cadence.cost <= 140 * MS, "{}", cadence.cost);
    }

    proptest! {
        #[test]
        fn reading_never_takes_more_than_its_share(
            mut sources in prop::collection::vec((1u64..60_000, 1u64..100_000_000), 1..30),
            permille in 1u32..1000,
        ) {
            sources.sort_unstable();
            let lane: Vec<_> = sources.iter().map(|(wanted, cost)| with_cost(wanted * MS, *cost)).collect();
            let duty = f64::from(permille) / 1000.0;
            let floor = floor(lane.iter(), duty);
            let spent: f64 = lane.iter().map(|c| c.cost as f64 / c.wanted.max(floor) as f64).sum();
            prop_assert!(spent <= duty * 1.000_001, "{spent} of {duty}");
        }
    }
}
