//! A cumulative histogram: one observation per sample, so that a burst shows at any scrape interval.

/// Counts observations up to each of a few bounds.
#[derive(Clone, Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// Observations by bucket; the last holds those above every bound.
    counts: Box<[u64]>,
    sum: f64,
}

/// Bounds for utilization: fine near a full line, where bursts are.
pub(crate) const UTILIZATION: &[f64] = &[0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];
/// Bounds for pause: fine near zero, where trouble begins, and at one, where it is a storm.
pub(crate) const PAUSE: &[f64] = &[0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0];

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1].into(),
            sum: 0.0,
        }
    }

    pub(crate) fn observe(&mut self, value: f64) {
        let bucket = self
            .bounds
            .iter()
            .position(|bound| value <= *bound)
            .unwrap_or(self.bounds.len());
        self.counts[bucket] += 1;
        self.sum += value;
    }

    /// The upper bounds, ascending, without the infinite one.
    #[must_use]
    pub fn bounds(&self) -> &'static [f64] {
        self.bounds
    }

    /// Observations up to the bound at this position; the position behind the last bound has them all.
    ///
    /// # Panics
    /// If there is no such position.
    #[must_use]
    pub fn cumulative(&self, position: usize) -> u64 {
        self.counts[..=position].iter().sum()
    }

    /// All observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all observed values.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_counts_at_its_bound_and_above() {
        let mut histogram = Histogram::new(&[0.1, 0.5]);
        for value in [0.0, 0.1, 0.3, 0.9] {
            histogram.observe(value);
        }
        assert_eq!([0, 1, 2].map(|at| histogram.cumulative(at)), [2, 3, 4]);
        assert_eq!(histogram.count(), 4);
        assert!((histogram.sum() - 1.3).abs() < 1e-12);
    }

    #[test]
    fn bounds_ascend() {
        assert!(UTILIZATION.is_sorted() && PAUSE.is_sorted());
    }
}
