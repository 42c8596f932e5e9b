//! What the log counts, for whoever renders it. Knows no metrics library.

use domain::{Counter, Gauge};

/// What tails, rings and retention count, over all tenants.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Tails that run.
    pub live_tails: Gauge,
    /// Tails that repeat something that failed.
    pub stalled_tails: Gauge,
    /// Opened logs that were refused because of `sync.max_live_tenants`.
    pub opens_refused: Counter,
    /// Events that tails took from memory.
    pub events_from_memory: Counter,
    /// Events that tails read from the store.
    pub events_from_store: Counter,
    /// Committed batches that a full queue turned away; the store has them.
    pub batches_dropped: Counter,
    /// Committed batches that the tail had already seen, wholly or in part.
    pub batches_stale: Counter,
    /// Committed batches that did not continue the tail's position: the store has what lies between.
    pub batches_ahead: Counter,
    /// Observations and reads of tails that failed and were repeated.
    pub tail_retries: Counter,
    /// Polls of the heads of all live tenants.
    pub polls: Counter,
    /// Such polls that failed.
    pub poll_failures: Counter,
    /// Heads above the position that other nodes told of.
    pub hinted: Counter,
    /// Logs that were marked replaced.
    pub replaced: Counter,
    /// Reads that the ring answered.
    pub ring_reads: Counter,
    /// Reads that the store answered.
    pub store_reads: Counter,
}

/// What retention counts, over all tenants.
#[derive(Debug, Default)]
pub struct RetentionMetrics {
    /// Rows that were removed.
    pub removed_events: Counter,
    /// Deduplication keys that expired.
    pub expired_keys: Counter,
    /// Steps that failed; the next pass does them.
    pub failures: Counter,
    /// Passes over all tenants.
    pub passes: Counter,
}
