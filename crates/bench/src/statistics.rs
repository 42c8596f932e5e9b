//! Medians and latencies.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest latency that is told apart, in nanoseconds: a minute.
const LONGEST: u64 = 60_000_000_000;

/// The middle of `values`; of an even number the mean of the two in the middle. 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    if sorted.len().is_multiple_of(2) { f64::midpoint(at(middle.saturating_sub(1)), at(middle)) } else { at(middle) }
}

/// Latencies, kept to three digits.
#[derive(Debug)]
pub(crate) struct Latencies(Option<Histogram<u64>>);

impl Latencies {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, 3).ok())
    }

    /// Adds one.
    pub(crate) fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(nanoseconds);
        }
    }

    /// Adds all of `other`.
    pub(crate) fn join(&mut self, other: &Self) {
        if let (Some(mine), Some(other)) = (&mut self.0, &other.0) {
            // Both have the same bounds, so it cannot be refused.
            let _ = mine.add(other);
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::len)
    }

    /// The latency, in seconds, that `percent` of them do not exceed.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        self.0.as_ref().map_or(0, |histogram| histogram.value_at_percentile(percent)) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Latencies, median};

    #[test]
    fn the_median_does_not_follow_an_outlier() {
        assert!((median(&[3.0, 1.0, 1000.0]) - 3.0).abs() < f64::EPSILON);
        assert!((median(&[1.0, 2.0, 3.0, 4.0]) - 2.5).abs() < f64::EPSILON);
        assert!(median(&[]).abs() < f64::EPSILON);
    }

    #[test]
    fn percentiles_are_those_of_all_that_was_joined() {
        let (mut fast, mut slow) = (Latencies::new(), Latencies::new());
        (0..99).for_each(|_| fast.record(Duration::from_micros(100)));
        slow.record(Duration::from_millis(50));
        fast.join(&slow);
        assert_eq!(fast.len(), 100);
        assert!((fast.percentile(50.0) - 100e-6).abs() < 1e-6);
        assert!((fast.percentile(100.0) - 50e-3).abs() < 1e-4);
    }

    #[test]
    fn a_latency_beyond_the_bounds_still_counts() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::from_hours(1));
        assert!(latencies.percentile(99.0) >= 60.0);
    }
}
