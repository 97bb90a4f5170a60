//! Deltas, rates, ratios and histograms over rows of counters; pure.
