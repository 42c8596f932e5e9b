//! What this module counts. Rendering is not its business.

use domain::Counter;

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
