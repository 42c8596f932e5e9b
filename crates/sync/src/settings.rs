//! What the log can be told: every limit, window and threshold by the name of its configuration key.

use std::time::Duration;

/// Settings of the log. The field documentation names the configuration key; [`Settings::default`] gives the product's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `sync.ring_max_events`: how many of a tenant's most recent events are kept in memory while its tail runs.
    pub ring_max_events: usize,
    /// `sync.ring_max_bytes`: how many bytes of a tenant's most recent events are kept in memory while its tail runs.
    pub ring_max_bytes: usize,
    /// `sync.ring_total_bytes`: what all rings of the process share; each gets at most its equal part.
    pub ring_total_bytes: usize,
    /// `sync.tail_queue_max_events`: how many committed events may wait in memory for a tenant's tail; beyond, the tail reads the store.
    pub tail_queue_max_events: usize,
    /// `sync.tail_poll_interval`: how long a commit that nobody announced may stay unseen.
    pub tail_poll_interval: Duration,
    /// `sync.tail_linger`: how long a tenant's tail runs on without readers.
    pub tail_linger: Duration,
    /// `sync.max_live_tenants`: how many tenants may have a tail at once. Tails without readers make room; when there is none, opening another is refused.
    pub max_live_tenants: usize,
    /// `sync.catchup_page_size`: events that the tail reads at once from the store.
    pub page_max_events: usize,
    /// `sync.catchup_page_bytes`: bytes that the tail reads at once from the store.
    pub page_max_bytes: usize,
    /// `database.listen_reconnect_backoff_cap`: the longest pause before something that failed in the store is tried again.
    pub backoff_cap: Duration,
    /// `sync.event_retention`: how long events are kept; for ever when absent.
    pub event_retention: Option<Duration>,
    /// `sync.retention_interval`: how often retention looks for what is due.
    pub retention_interval: Duration,
    /// `sync.retention_chunk`: how many rows one step of retention removes.
    pub retention_chunk: usize,
    /// `sync.retention_grace`: how long rows stay after the floor was raised past them, so that a reader that began before is not cut off.
    pub retention_grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ring_max_events: 8_192,
            ring_max_bytes: 16 * 1024 * 1024,
            ring_total_bytes: 128 * 1024 * 1024,
            tail_queue_max_events: 32_768,
            tail_poll_interval: Duration::from_secs(1),
            tail_linger: Duration::from_mins(1),
            max_live_tenants: 10_000,
            page_max_events: 500,
            page_max_bytes: 1024 * 1024,
            backoff_cap: Duration::from_secs(5),
            event_retention: None,
            retention_interval: Duration::from_mins(1),
            retention_chunk: 1_000,
            retention_grace: Duration::from_mins(1),
        }
    }
}
