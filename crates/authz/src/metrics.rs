//! What this module counts. Rendering is not its business.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }

    /// The count since the start of the process.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Requests whose token was known in memory.
    pub token_cache_hits: Counter,
    /// Requests whose token had to be read from the store.
    pub token_cache_misses: Counter,
    /// Credentials that were refused.
    pub authentication_failures: Counter,
    /// Rights of a principal read from the store.
    pub rights_loads: Counter,
    /// Requests that were refused.
    pub denials: Counter,
    /// Refused requests that were counted together because too many actors were refused at once.
    pub denials_merged: Counter,
    /// Uses of tokens that were not noted because too many were waiting.
    pub token_uses_dropped: Counter,
    /// Writes of denials or token uses that failed; they are repeated.
    pub flush_failures: Counter,
}
