//! What this module counts. Rendering is not its business.

use std::sync::Arc;

use domain::{Counter, Gauge, Latency};

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct Metrics {
    /// From the acceptance of the event that rang to the signal.
    pub signal_latency: Latency,
    /// Signals sent.
    pub signals: Counter,
    /// Polls and claims by agents that had a signal since their last one: with `signals`, the hint-to-fetch ratio.
    pub fetches_after_signal: Counter,
    /// Streams of signals opened: with `streams`, the reconnect rate.
    pub streams_opened: Counter,
    /// Open streams of signals.
    pub streams: Gauge,
    /// Polls and claims that waited.
    pub long_polls: Counter,
    /// Those that ended without an item.
    pub long_poll_timeouts: Counter,
    /// Waits and streams now.
    pub waiters: Gauge,
    /// Waits that were answered at once because there were too many.
    pub waiters_refused: Counter,
    /// Polls of the inbox.
    pub polls: Counter,
    /// Questions for the head; counted by the adapter.
    pub head_checks: Counter,
    /// Those answered "not modified"; counted by the adapter.
    pub not_modified: Counter,
    /// Polls that were told to start again.
    pub cursor_resets: Counter,
    /// Items claimed.
    pub claims: Counter,
    /// Items asked for that another lease held.
    pub duplicate_claims: Counter,
    /// Claims that were answered again for a repeated `Idempotency-Key`.
    pub claims_replayed: Counter,
    /// Items given back because their client was gone before the answer.
    pub given_back_unread: Counter,
    /// Leases that ended without their worker.
    pub lease_expiries: Counter,
    /// Presented tokens that no present lease has.
    pub leases_lost: Counter,
    /// Heartbeats that extended a lease.
    pub heartbeats: Counter,
    /// Items acknowledged as completed.
    pub acks: Counter,
    /// From the claim to its acknowledge, whatever the result.
    pub ack_latency: Latency,
    /// Items acknowledged as failed.
    pub failed: Counter,
    /// Items discarded, by workers and operators.
    pub discarded: Counter,
    /// Items released.
    pub released: Counter,
    /// Items that became claimable again.
    pub requeued: Counter,
    /// Items that became dead letters.
    pub dead_lettered: Counter,
    /// Items put aside.
    pub quarantined: Counter,
    /// Dead letters given new attempts.
    pub redriven: Counter,
    /// Items that expired.
    pub expired: Counter,
    /// Inboxes swept.
    pub sweeps: Counter,
    /// Steps of the sweeper that the store refused; they are repeated.
    pub sweep_errors: Counter,
}

/// Counts something in a gauge for as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted {
    metrics: Arc<Metrics>,
    gauge: fn(&Metrics) -> &Gauge,
}

impl Counted {
    pub(crate) fn new(metrics: &Arc<Metrics>, gauge: fn(&Metrics) -> &Gauge) -> Self {
        gauge(metrics).up();
        Self { metrics: Arc::clone(metrics), gauge }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.gauge)(&self.metrics).down();
    }
}
