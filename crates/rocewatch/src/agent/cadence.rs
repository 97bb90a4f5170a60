//! How often a source is read: as often as wanted, as long as reading stays within its share of the node's time.

/// The cadence of one source.
#[derive(Clone, Debug)]
pub(super) struct Cadence {
    /// Wanted interval in nanoseconds.
    wanted: u64,
    /// What a read costs, in nanoseconds: a moving average that one outlier cannot move far.
    cost: u64,
}

impl Cadence {
    pub(super) fn new(wanted: u64) -> Self {
        Self { wanted, cost: 0 }
    }

    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// What a read costs, in nanoseconds.
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Takes in what a read cost. A single read that hung for a minute says nothing of the next, so a sample counts
    /// at most four times the estimate (or a millisecond); a read that became slower for good is believed within a
    /// few reads.
    pub(super) fn observe(&mut self, cost: u64) {
        if self.cost == 0 {
            self.cost = cost.clamp(1, 100_000_000);
            return;
        }
        let sample = cost.min(self.cost.saturating_mul(4).max(1_000_000));
        self.cost = (self.cost - self.cost / 8 + sample / 8).max(1);
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

    #[test]
    fn a_source_that_became_slow_is_believed_within_seconds() {
        let mut cadence = with_cost(100 * MS, MS);
        for _ in 0..24 {
            cadence.observe(50 * MS);
        }
        assert!(cadence.cost > 40 * MS, "{}", cadence.cost);
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
