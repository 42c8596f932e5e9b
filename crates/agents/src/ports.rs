//! What `agents` offers to delivery, and what it needs of it.

use std::time::Duration;

use async_trait::async_trait;
use authz::Caller;
use bytes::Bytes;
use domain::{ConsumerName, Seq, StoreError, SyncEpoch, TenantId, Timestamp};
use thiserror::Error;

use crate::{ConsumerKey, Holder, Save, SaveOutcome, Taken};

/// Why a consumer cannot continue where it stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResyncReason {
    /// Events after its position were removed by retention.
    Retention,
    /// Its position lies above the head: history was replaced.
    CursorAhead,
    /// Its position belongs to another history.
    EpochChanged,
}

/// Why an acknowledgement is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AckRefused {
    /// Above the committed head.
    #[error("seq lies above the head of the log")]
    AboveHead,
}

/// Why a consumer operation was not done.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ConsumerError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] authz::Denied),
    /// The acknowledgement is not valid.
    #[error(transparent)]
    Ack(#[from] AckRefused),
    /// `after` lies above the committed head.
    #[error("after lies above the head of the log")]
    AfterAboveHead,
    /// The consumer never connected.
    #[error("this consumer never connected")]
    Unknown,
    /// The agent has as many consumers as it may.
    #[error("the agent has as many consumers as it may")]
    TooMany,
    /// Another holder took over.
    #[error("another holder took over")]
    Replaced,
    /// Taken over too often; try again after this long.
    #[error("taken over too often")]
    TooManyTakeovers(Duration),
    /// The consumer cannot continue where it stood.
    #[error("the consumer must resynchronise")]
    Resync {
        /// Why.
        reason: ResyncReason,
        /// The committed head; where the cursor stands now for retention and `cursor_ahead`.
        head: Seq,
        /// The log's epoch.
        epoch: SyncEpoch,
        /// The lowest retained position.
        floor: Seq,
    },
    /// The caller lost its standing while it waited: the token expired or was revoked, or the principal is disabled.
    #[error("the credential is not valid any more")]
    Unauthenticated,
    /// The process is shutting down.
    #[error("shutting down")]
    ShuttingDown,
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The cursor use cases, offered to delivery (names of seed 004).
#[async_trait]
pub trait Consumers: Send + Sync {
    /// Authorises `agent.events.consume`, makes the row at the committed head when absent, writes the holder. Keeps `acked_seq`.
    async fn take(&self, caller: &Caller, name: &ConsumerName, holder: Holder) -> Result<Taken, ConsumerError>;
    /// Authorises and validates an acknowledgement; writes nothing. `dispatched_up_to` is the position that delivery can vouch for; only above it the committed head is read again.
    async fn accept_ack(&self, caller: &Caller, seq: Seq, dispatched_up_to: Seq) -> Result<(), ConsumerError>;
    /// Fenced, monotone saves and verifications in one batch. Takes no caller: the ticker has no request.
    async fn save(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, ConsumerError>;
    /// Fenced; moves the value to `seq`, down only from above the head, and answers what is stored. Only for resync.
    async fn restart(&self, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, ConsumerError>;
    /// The consumers that were taken at or after `since` (the store's clock), each with its present holder: how a quiet session learns that it was taken over elsewhere.
    async fn taken_since(&self, since: Timestamp) -> Result<Vec<(ConsumerKey, Option<Holder>)>, ConsumerError>;
    /// The holder's connection ended by itself (not because another took over): a take that follows is no takeover and counts for no storm (`agent.takeover_burst`).
    fn detached(&self, key: &ConsumerKey, holder: Holder) {
        let _ = (key, holder);
    }
}

/// A REST poll, authorised and with its bounds applied.
#[derive(Clone, Debug)]
pub struct PollRequest {
    /// The consumer's name.
    pub name: ConsumerName,
    /// At most this many events; already capped to `agent.max_inflight_events`.
    pub limit: usize,
    /// How long to wait for an admissible event; zero answers at once.
    pub wait: Duration,
    /// Where the client says it stands.
    pub after: Option<Seq>,
    /// The epoch the client says it is in.
    pub epoch: Option<SyncEpoch>,
}

/// What a poll answers.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// Encoded envelopes, delivery fields included.
    pub events: Vec<Bytes>,
    /// What to acknowledge after processing, also when there are no events.
    pub next_cursor: Seq,
    /// The head the page was computed against.
    pub head: Seq,
    /// The log's epoch.
    pub epoch: SyncEpoch,
    /// The previous page is not proven received yet: `next_cursor` is the acknowledged position and must not be used as `after`.
    pub unproven: bool,
}

/// The head of a tenant's log as consumer operations report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedHead {
    /// The committed head.
    pub head: Seq,
    /// The log's epoch.
    pub epoch: SyncEpoch,
    /// The lowest retained position.
    pub floor: Seq,
}

/// What `agents` needs of delivery; implemented by `gateway` (seed 004, design note 1).
#[async_trait]
pub trait ConsumerFeed: Send + Sync {
    /// Delivers to a REST consumer, taking it over from a gateway session if one holds it.
    async fn poll(&self, caller: &Caller, request: PollRequest) -> Result<FeedPage, ConsumerError>;
    /// An acknowledgement was stored: a window of the consumer in this process sees it, a waiting poll wakes.
    fn acked(&self, key: &ConsumerKey, acked: Seq);
    /// The committed head, at least this process's hub position.
    async fn head(&self, tenant: &TenantId) -> Result<FeedHead, ConsumerError>;
}
