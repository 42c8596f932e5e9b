//! What the inbox can be told: every limit, window and threshold by the name of its configuration key.

use std::time::Duration;

use crate::Rules;

/// Settings of the inbox (configuration section `inbox`). The field documentation names the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What every item lives by.
    pub rules: Rules,
    /// `inbox.sweep_interval`: how often it is looked for inboxes that time has something to do with.
    pub sweep_interval: Duration,
    /// `inbox.sweep_batch`: items of one inbox that are moved in one step of the sweeper, a claim or a bulk operation.
    pub sweep_batch: usize,
    /// `inbox.sweep_inboxes`: inboxes that are looked at in one round of the sweeper.
    pub sweep_inboxes: usize,
    /// `inbox.sweep_concurrency`: inboxes that the sweeper works on at the same time, so that they share a commit.
    pub sweep_concurrency: usize,
    /// `inbox.prune_interval`: how often it is looked for what its retention has passed.
    pub prune_interval: Duration,
    /// `inbox.prune_batch`: rows of each kind that are removed in one step.
    pub prune_batch: usize,
    /// `inbox.store_retry`: after how long a waiter or a stream looks again when the store failed.
    pub store_retry: Duration,
    /// `inbox.poll_wait_max`: the longest wait of a poll or a claim.
    pub poll_wait_max: Duration,
    /// `inbox.poll_max_items`: most items of one page.
    pub poll_max_items: usize,
    /// `inbox.claim_max_items`: most entries of one claim, acknowledge or heartbeat.
    pub claim_max_items: usize,
    /// `inbox.claim_max_bytes`: envelopes that one claim hands out; one always.
    pub claim_max_bytes: usize,
    /// `inbox.max_waiters`: waits and streams of the whole process.
    pub max_waiters: usize,
    /// `inbox.max_waiters_per_agent`: waits and streams of one agent.
    pub max_waiters_per_agent: usize,
    /// `inbox.ring_again`: after how long a stream rings again while items stay unclaimed; the last is repeated.
    pub ring_again: Vec<Duration>,
    /// `inbox.backlog_count_max`: up to how many the items of a backlog are counted.
    pub backlog_count_max: u64,
    /// `inbox.ended_retention`: how long acknowledged, expired and discarded items are kept.
    pub ended_retention: Duration,
    /// `inbox.claim_record_retention`: how long an `Idempotency-Key` of a claim is remembered.
    pub claim_record_retention: Duration,
    /// `inbox.session_retention`: how long a session is kept that is not heard of.
    pub session_retention: Duration,
    /// `inbox.session_touch_interval`: how often it is written down that a session was heard of.
    pub session_touch_interval: Duration,
    /// `inbox.summary_max`: bytes of a worker's line about an attempt.
    pub summary_max: usize,
    /// `inbox.result_max`: bytes of what a worker hands in.
    pub result_max: usize,
    /// `inbox.bulk_max`: items that one redrive or discard changes.
    pub bulk_max: usize,
    /// `inbox.max_queues`: queues that a request names, and paused queues of an inbox.
    pub max_queues: usize,
    /// `inbox.presence_max`: the longest absence that ends by itself.
    pub presence_max: Duration,
    /// `inbox.sse_heartbeat`: how often an idle stream says that it is alive; enforced by the transport.
    pub sse_heartbeat: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            rules: Rules::default(),
            sweep_interval: Duration::from_secs(1),
            sweep_batch: 500,
            sweep_inboxes: 64,
            sweep_concurrency: 8,
            prune_interval: Duration::from_mins(1),
            prune_batch: 500,
            store_retry: Duration::from_secs(1),
            poll_wait_max: Duration::from_secs(30),
            poll_max_items: 1_000,
            claim_max_items: 100,
            claim_max_bytes: 4 << 20,
            max_waiters: 100_000,
            max_waiters_per_agent: 100,
            ring_again: [5, 20, 60, 360].map(Duration::from_mins).to_vec(),
            backlog_count_max: 200,
            ended_retention: DAY * 30,
            claim_record_retention: DAY,
            session_retention: DAY * 7,
            session_touch_interval: Duration::from_secs(15),
            summary_max: 2_048,
            result_max: 65_536,
            bulk_max: 10_000,
            max_queues: 256,
            presence_max: DAY * 366,
            sse_heartbeat: Duration::from_secs(15),
        }
    }
}
