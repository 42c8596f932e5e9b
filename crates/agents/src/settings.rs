//! What consumers can be told: every limit, window and threshold by the name of its configuration key.

use std::time::Duration;

/// Settings of consumers. The field documentation names the configuration key; [`Settings::default`] gives the product's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `agent.ack_timeout`: how long a dispatched event may stay unacknowledged before delivery restarts at the acknowledged position.
    pub ack_timeout: Duration,
    /// `agent.ack_persist_interval`: how long an acknowledgement over the gateway may stay in memory before it is saved.
    pub ack_persist_interval: Duration,
    /// `agent.max_inflight_events`: how many unacknowledged events may be on their way to one consumer, at least 1.
    pub max_inflight_events: usize,
    /// `agent.max_consumers_per_agent`: how many consumers an agent may have, at least 1.
    pub max_consumers_per_agent: usize,
    /// `agent.takeover_burst`: how often a minute a consumer may be taken from a holder that was still attached; more is refused for a while.
    pub takeover_burst: u32,
    /// `agent.poll_wait_max`: the longest wait of a poll; longer ones are shortened to it.
    pub poll_wait_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ack_timeout: Duration::from_secs(30),
            ack_persist_interval: Duration::from_secs(1),
            max_inflight_events: 256,
            max_consumers_per_agent: 100,
            takeover_burst: 10,
            poll_wait_max: Duration::from_secs(30),
        }
    }
}
