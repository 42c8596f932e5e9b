//! What every module counts with. Lock-free, and without a word about how it is shown: exposition is an adapter's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only grows, since the start of the process.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts this many.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts one.
    pub fn increment(&self) {
        self.add(1);
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// One more; answers how many there are now.
    pub fn up(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// One less.
    pub fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// This many.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Upper bounds of the buckets of a [`Latency`], in microseconds; a last bucket has no bound.
const LATENCY_BOUNDS_MICROS: [u64; 14] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 1_000_000, 5_000_000, 30_000_000, 120_000_000];

/// A distribution of durations.
#[derive(Debug, Default)]
pub struct Latency {
    buckets: [AtomicU64; LATENCY_BOUNDS_MICROS.len() + 1],
    sum_micros: AtomicU64,
}

impl Latency {
    /// The sum of all durations in microseconds, and how many took at most so many microseconds (not cumulative); the last has no bound.
    pub fn get(&self) -> (u64, Vec<(Option<u64>, u64)>) {
        let bounds = LATENCY_BOUNDS_MICROS.into_iter().map(Some).chain([None]);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        (self.sum_micros.load(Ordering::Relaxed), bounds.zip(counts).collect())
    }

    /// Adds one duration.
    pub fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(LATENCY_BOUNDS_MICROS.partition_point(|bound| *bound < micros)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Latency;

    #[test]
    fn a_duration_falls_into_the_bucket_that_ends_at_or_above_it() {
        let latency = Latency::default();
        for micros in [0, 100, 101, 999_999, 1_000_000_000] {
            latency.observe(Duration::from_micros(micros));
        }
        let (sum, buckets) = latency.get();
        let filled: Vec<_> = buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(sum, 1_001_000_200);
        assert_eq!(filled, [(Some(100), 2), (Some(250), 1), (Some(1_000_000), 1), (None, 1)]);
    }
}
