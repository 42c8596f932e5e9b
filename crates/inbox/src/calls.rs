//! What the use cases are asked, and what they answer.

use std::time::Duration;

use bytes::Bytes;
use domain::{AgentSessionId, EventId, PrincipalId, QueueName, Seq, SyncEpoch, TenantId, Timestamp};

use crate::{AckResult, Backlog, Item, ItemFilter, LeaseToken, Policy, Presence, Report};

/// An agent session to open.
#[derive(Clone, Debug, Default)]
pub struct Subscribe {
    /// The device that the agent names.
    pub device: Option<String>,
    /// Transports that the agent has, in the order of its preference; `sse`, `websocket`, `long-poll`, `poll`. Unknown ones are left out.
    pub transports: Vec<String>,
    /// The highest `ring_seq` that it has seen.
    pub last_seen: Seq,
    /// Whether it wants to claim: under [`crate::Concurrency::SingleActiveSession`] it then becomes the one that may.
    pub wants_claims: bool,
}

/// An agent session that was opened.
#[derive(Clone, Debug)]
pub struct Subscribed {
    /// Its id; no credential.
    pub session: AgentSessionId,
    /// The inbox's head.
    pub head: Seq,
    /// The identity of the log's history.
    pub epoch: SyncEpoch,
    /// The transport to use.
    pub transport: &'static str,
}

/// `pollInbox`.
#[derive(Clone, Debug, Default)]
pub struct Poll {
    /// Items whose `ring_seq` lies above; zero means from the oldest.
    pub after: Seq,
    /// At most this many, at least 1.
    pub limit: usize,
    /// How long to wait for an item; at most `inbox.poll_wait_max`.
    pub wait: Duration,
    /// Only what is `available`.
    pub claimable_only: bool,
    /// Only of these queues.
    pub queues: Option<Vec<QueueName>>,
    /// The epoch that the client says its cursor belongs to.
    pub epoch: Option<SyncEpoch>,
    /// The session that polls.
    pub session: Option<AgentSessionId>,
}

/// The answer of [`Poll`].
#[derive(Clone, Debug)]
pub struct Polled {
    /// The inbox's head.
    pub head: Seq,
    /// The identity of the log's history.
    pub epoch: SyncEpoch,
    /// Each item, and whether it is held back by a pause.
    pub items: Vec<(Item, bool)>,
    /// Where to go on: the `ring_seq` of the last item, or how far was looked when `inbox.scan_max` ended the page, or what was asked for.
    pub next: Seq,
    /// Whether more may follow.
    pub more: bool,
}

/// What an `Idempotency-Key` makes of a claim.
#[derive(Clone, Debug)]
pub struct ClaimKey {
    /// The key.
    pub key: String,
    /// SHA-256 of the request.
    pub request_hash: [u8; 32],
}

/// `claimItems`.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Which items.
    pub events: Vec<EventId>,
    /// For how long; `inbox.lease_default` when absent.
    pub lease: Option<Duration>,
    /// The session that claims.
    pub session: Option<AgentSessionId>,
    /// A repeat is answered with what is still held.
    pub key: Option<ClaimKey>,
}

/// `claimNext`.
#[derive(Clone, Debug)]
pub struct ClaimNext {
    /// Only of these queues.
    pub queues: Option<Vec<QueueName>>,
    /// At most this many, 1 to `inbox.claim_max_items`.
    pub limit: usize,
    /// For how long; `inbox.lease_default` when absent.
    pub lease: Option<Duration>,
    /// How long to wait for an item; at most `inbox.poll_wait_max`.
    pub wait: Duration,
    /// The session that claims.
    pub session: Option<AgentSessionId>,
    /// A repeat is answered with what is still held.
    pub key: Option<ClaimKey>,
}

/// An item that was claimed.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The item as it stands now; its lease is present.
    pub item: Item,
    /// The secret of its lease.
    pub token: LeaseToken,
    /// Until the lease ends, by the store's clock.
    pub expires_in: Duration,
    /// The event's envelope ([`domain::Event::body`]); absent if the store has lost it.
    pub envelope: Option<Bytes>,
}

/// What became of one item of a batch.
#[derive(Clone, Debug)]
pub enum ItemOutcome<T> {
    /// It was done.
    Ok(T),
    /// Another lease holds it.
    AlreadyClaimed,
    /// It is not claimable: it rests, is paused, put aside, a dead letter or over.
    NotAvailable,
    /// It expired.
    Expired,
    /// The inbox has no such item.
    NotFound,
    /// The token is not the one of the item's present lease.
    LeaseLost,
    /// The agent holds as many items as it may.
    LimitReached,
}

/// The answer of [`ClaimNext`].
#[derive(Clone, Debug)]
pub struct ClaimedNext {
    /// What was claimed, in the order of claim.
    pub claims: Vec<Claimed>,
    /// What waits beside it, in the queues that were asked for and are not paused.
    pub backlog: Backlog,
}

/// One acknowledge of a batch.
#[derive(Clone)]
pub struct Acknowledge {
    /// The item.
    pub event: EventId,
    /// The lease token as the worker presents it.
    pub token: String,
    /// The result.
    pub result: AckResult,
    /// What the worker hands in with it.
    pub report: Report,
}

/// `release`.
#[derive(Clone)]
pub struct GiveBack {
    /// The item.
    pub event: EventId,
    /// The lease token as the worker presents it.
    pub token: String,
    /// The worker's reason; `snooze` does not count as an attempt.
    pub reason: String,
    /// How long it rests, at most `inbox.retry_cap`; claimable at once when absent.
    pub rest: Option<Duration>,
    /// The session that gives it back.
    pub session: Option<AgentSessionId>,
}

// The tokens are secrets.

impl std::fmt::Debug for Acknowledge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acknowledge").field("event", &self.event).field("result", &self.result).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for GiveBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GiveBack").field("event", &self.event).field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heartbeat").field("event", &self.event).field("extend", &self.extend).finish_non_exhaustive()
    }
}

/// One heartbeat of a batch.
#[derive(Clone)]
pub struct Heartbeat {
    /// The item.
    pub event: EventId,
    /// The lease token as the worker presents it.
    pub token: String,
    /// By how long from now; `inbox.lease_default` when absent.
    pub extend: Option<Duration>,
}

/// A lease that was extended.
#[derive(Clone, Copy, Debug)]
pub struct Extended {
    /// Its new end.
    pub until: Timestamp,
    /// The same from now, by the store's clock.
    pub expires_in: Duration,
    /// Beyond which nothing extends it.
    pub attempt_deadline: Timestamp,
}

/// A redrive or a discard of many.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// Whose inbox.
    pub recipient: PrincipalId,
    /// Which items.
    pub filter: ItemFilter,
    /// Only count.
    pub dry_run: bool,
}

/// What a bulk operation did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkDone {
    /// Items that matched.
    pub matched: u64,
    /// Items that were changed; zero in a dry run.
    pub changed: u64,
    /// Whether the rate cap (`inbox.bulk_max`), or how much one call looks at, may have left some for another call.
    pub more: bool,
}

/// An inbox as its agent and operators see it.
#[derive(Clone, Debug)]
pub struct InboxState {
    /// Whose it is.
    pub recipient: PrincipalId,
    /// Its head.
    pub head: Seq,
    /// The identity of the log's history.
    pub epoch: SyncEpoch,
    /// Whether it is paused as a whole.
    pub paused: bool,
    /// Its paused queues.
    pub paused_queues: Vec<QueueName>,
    /// Whether the agent wants to be rung.
    pub presence: Presence,
    /// What an operator decided.
    pub policy: Policy,
    /// What waits, held back by a pause or not.
    pub backlog: Backlog,
}

/// A hint that an inbox has something (seed 000, "Signal payload"). Never the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The tenant.
    pub tenant: TenantId,
    /// Whose inbox.
    pub recipient: PrincipalId,
    /// Its head.
    pub head: Seq,
    /// The identity of the log's history.
    pub epoch: SyncEpoch,
    /// What nobody has acknowledged, counted up to a bound.
    pub unacked: u64,
    /// The client should poll from the beginning: presence returned, or a pause ended.
    pub resync: bool,
    /// With `resync` what waits, in counts only: one entry for each queue that has something, at most `inbox.max_queues`.
    pub queues: Vec<QueueDigest>,
    /// Identifies this ring.
    pub delivery: EventId,
    /// When it was sent.
    pub sent_at: Timestamp,
}

/// How much waits in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDigest {
    /// The queue.
    pub queue: QueueName,
    /// Items that can be claimed, counted up to a bound.
    pub available: u64,
}

/// A change of an agent's presence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceChange {
    /// It wants to be rung.
    In,
    /// It does not.
    Out {
        /// For how long; until it says otherwise when absent.
        for_: Option<Duration>,
    },
}

#[cfg(test)]
mod tests {
    use domain::EventId;
    use uuid::Uuid;

    use super::{Acknowledge, GiveBack, Heartbeat};
    use crate::{AckResult, Report};

    #[test]
    fn no_lease_token_is_shown() {
        let (event, token) = (EventId::new(Uuid::from_u128(1)), || "a secret".to_owned());
        let acknowledge = Acknowledge { event, token: token(), result: AckResult::Completed, report: Report::default() };
        let release = GiveBack { event, token: token(), reason: "busy".to_owned(), rest: None, session: None };
        let heartbeat = Heartbeat { event, token: token(), extend: None };
        for text in [format!("{acknowledge:?}"), format!("{release:?}"), format!("{heartbeat:?}")] {
            assert!(text.contains("event") && !text.contains("secret"), "{text}");
        }
    }
}
