//! A distribution in fixed buckets, cheap to add to from many threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::HistogramSnapshot;

/// Upper bounds of the buckets, in seconds: from what a memory read takes to what nobody waits for.
const BOUNDS: [f64; 14] = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One per bound, not cumulative, and one for what lies above.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Histogram {
    /// Adds one duration.
    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let index = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(bucket) = self.buckets.get(index) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_nanos.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// What it holds now.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
        let sum = Duration::from_nanos(self.sum_nanos.load(Ordering::Relaxed)).as_secs_f64();
        HistogramSnapshot { sum, buckets: bounds.zip(counts).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Histogram;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for millis in [1, 1, 3, 60_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let snapshot = histogram.snapshot();
        let of = |bound: f64| snapshot.buckets.iter().find(|(upper, _)| (*upper - bound).abs() < 1e-9).unwrap().1;
        assert_eq!((of(0.001), of(0.005), snapshot.count()), (2, 1, 4));
        assert!((snapshot.sum - 60.005).abs() < 1e-6);
    }
}
