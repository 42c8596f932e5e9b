//! What this module counts. Rendering is not its business.

use domain::Counter;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Events that principals published and that are in the log.
    pub published: Counter,
    /// Events that were recognised as repeats.
    pub deduplicated: Counter,
    /// Requests that were refused because a deduplication key stood for another body.
    pub conflicts: Counter,
    /// Events that were stored aside until they are due.
    pub scheduled: Counter,
    /// Scheduled events that were appended.
    pub promoted: Counter,
    /// Scheduled events that could not be appended when they were due.
    pub failed: Counter,
    /// Staged events that were appended or scheduled.
    pub moved: Counter,
    /// Staged events that could not be appended.
    pub staged_failed: Counter,
    /// Steps of moving that the store refused; they are repeated.
    pub move_errors: Counter,
    /// Steps of promotion that the store refused; they are repeated.
    pub promotion_errors: Counter,
}
