//! The ports to stored inboxes. Rows only: what becomes of an item is decided in this crate, once for every store.

use async_trait::async_trait;
use bytes::Bytes;
use domain::{AgentSessionId, EventId, EventType, Publication, QueueName, Seq, StoreError, SyncEpoch, TenantId, Timestamp};

use crate::{AckState, Generation, Item, LeaseKey, Recipient, RecipientNumber, RecipientRow};

/// Which queues a claim or a poll looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFilter {
    /// Only these; all when absent.
    pub only: Option<Vec<QueueName>>,
    /// Never these.
    pub except: Vec<QueueName>,
}

impl QueueFilter {
    /// Whether it lets `queue` through.
    pub fn admits(&self, queue: &QueueName) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(queue)) && !self.except.contains(queue)
    }
}

/// Which items a listing, a redrive or a discard is about. Everything that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemFilter {
    /// In one of these states; any when empty.
    pub states: Vec<AckState>,
    /// In this queue.
    pub queue: Option<QueueName>,
    /// Of this type.
    pub event_type: Option<EventType>,
    /// Made before this instant.
    pub created_before: Option<Timestamp>,
    /// Made at or after this instant.
    pub created_after: Option<Timestamp>,
    /// Exactly these events; any when empty.
    pub event_ids: Vec<EventId>,
}

impl ItemFilter {
    /// Whether it is about `item`.
    pub fn matches(&self, item: &Item) -> bool {
        let facts = &item.facts;
        (self.states.is_empty() || self.states.contains(&item.state))
            && self.queue.as_ref().is_none_or(|queue| *queue == facts.queue)
            && self.event_type.as_ref().is_none_or(|event_type| *event_type == facts.event_type)
            && self.created_before.is_none_or(|end| facts.created_at < end)
            && self.created_after.is_none_or(|start| facts.created_at >= start)
            && (self.event_ids.is_empty() || self.event_ids.contains(&facts.event_id))
    }
}

/// An inbox with the log that its numbers belong to, in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxView {
    /// The row; absent for an agent that never had an item, a session, a pause or a policy.
    pub row: Option<RecipientRow>,
    /// The identity of the log's history.
    pub epoch: SyncEpoch,
    /// The lowest retained position of the log.
    pub floor: Seq,
    /// The committed head of the log.
    pub log_head: Seq,
}

impl InboxView {
    /// The highest `ring_seq` that the inbox ever had; zero for one that never had an item.
    pub fn head(&self) -> Seq {
        self.row.as_ref().map_or(Seq::ZERO, |row| row.head)
    }
}

/// A page of current items in the order of their `ring_seq`, with the inbox in the same snapshot.
#[derive(Clone, Debug)]
pub struct InboxPage {
    /// The inbox.
    pub view: InboxView,
    /// The items.
    pub items: Vec<Item>,
    /// Whether more may follow.
    pub more: bool,
    /// Where to go on: the `ring_seq` of the last item, or how far was looked when [`PollRange::scan_max`] ended the page. What was asked for when
    /// nothing was found.
    pub next: Seq,
    /// The lowest `ring_seq` of the inbox's current items.
    pub oldest: Option<Seq>,
}

/// Which items to poll.
#[derive(Clone, Debug)]
pub struct PollRange {
    /// Items whose `ring_seq` lies strictly above.
    pub after: Seq,
    /// At most this many, at least 1.
    pub limit: usize,
    /// Only those whose state is `available`.
    pub claimable_only: bool,
    /// Only of these queues.
    pub queues: QueueFilter,
    /// At most so many items are looked at, at least 1: a page may end early, even without an item.
    pub scan_max: usize,
}

/// Which part of a listing to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemRange {
    /// Items of events strictly after this one; from the first when absent.
    pub after: Option<EventId>,
    /// At most this many items, at least 1.
    pub limit: usize,
    /// At most so many items are looked at, at least 1: a page may end early, even without an item.
    pub scan_max: usize,
    /// A page ends when the histories of its items have more bytes; one item always.
    pub bytes_max: usize,
}

/// A part of a listing, by event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemPage {
    /// The items. May be empty although more follow.
    pub items: Vec<Item>,
    /// Where to go on, when more may follow.
    pub next: Option<EventId>,
}

/// How much waits, counted up to a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Items that can be claimed, or are retries that are due.
    pub available: u64,
    /// Items that somebody holds.
    pub claimed: u64,
    /// Items that rest and are not due yet.
    pub resting: u64,
    /// When the first lease of those that are claimed ends, or the first of those that rest is due: whichever comes first.
    pub next_due: Option<Timestamp>,
}

impl Backlog {
    /// Everything that nobody has acknowledged.
    pub const fn unacked(&self) -> u64 {
        self.available + self.claimed + self.resting
    }
}

/// What is known of inboxes together, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxSums {
    /// Current items.
    pub current: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Quarantined items.
    pub quarantined: u64,
    /// When the oldest current item was made.
    pub oldest: Option<Timestamp>,
    /// The highest head.
    pub head: Seq,
}

impl InboxSums {
    /// These and others.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            current: self.current + other.current,
            dead_letters: self.dead_letters + other.dead_letters,
            quarantined: self.quarantined + other.quarantined,
            oldest: [self.oldest, other.oldest].into_iter().flatten().min(),
            head: self.head.max(other.head),
        }
    }
}

/// The same of the whole store, and of the tenants that have most.
#[derive(Clone, Debug, Default)]
pub struct InboxTotals {
    /// Of all inboxes.
    pub all: InboxSums,
    /// Of tenants with an item that has not ended, those with most of them first.
    pub tenants: Vec<(TenantId, InboxSums)>,
}

/// A session row (`agent_session` of seed 000).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSession {
    /// Its id; no credential.
    pub id: AgentSessionId,
    /// Whose it is.
    pub recipient: Recipient,
    /// The device that the agent named.
    pub device: Option<String>,
    /// How it is told: `sse`, `websocket`, `long-poll`, `poll`.
    pub transport: String,
    /// When it subscribed.
    pub connected_at: Timestamp,
    /// When it was last heard of.
    pub heartbeat_at: Timestamp,
    /// What it said it had seen.
    pub last_seen: Seq,
    /// The token it subscribed with.
    pub token: domain::TokenId,
    /// Whether a stream of it is open or it was heard of lately.
    pub is_active: bool,
}

/// The claims that an `Idempotency-Key` stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRecord {
    /// SHA-256 of the request.
    pub request_hash: [u8; 32],
    /// What was claimed, each at its generation.
    pub claims: Vec<(EventId, Generation)>,
    /// When.
    pub created_at: Timestamp,
}

/// Reading inboxes. Each call sees one committed snapshot. A row that cannot be read is left out, counted and logged once by the store;
/// it never hides its neighbours.
#[async_trait]
pub trait InboxStore: Send + Sync {
    /// The inbox and its log: a fixed number of row reads. [`StoreError::TenantInactive`] for a tenant that is not there.
    async fn view(&self, recipient: &Recipient) -> Result<InboxView, StoreError>;
    /// Current items by `ring_seq`, without their histories.
    async fn poll(&self, recipient: &Recipient, range: &PollRange) -> Result<InboxPage, StoreError>;
    /// How much waits at `now`, each number counted up to `most`. Queues that `queues` leaves out do not count; that any is paused is not looked at.
    async fn backlog(&self, recipient: &Recipient, queues: &QueueFilter, now: Timestamp, most: u64) -> Result<Backlog, StoreError>;
    /// The queues that have an item in state `available`, but for those in `except`, by name, at most `limit`. Costs a look at an index for each
    /// queue, however much waits in it.
    async fn claimable_queues(&self, recipient: &Recipient, except: &[QueueName], limit: usize) -> Result<Vec<QueueName>, StoreError>;
    /// Items of the inbox in any state by event id.
    async fn items(&self, recipient: &Recipient, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError>;
    /// One item in any state.
    async fn item(&self, recipient: &Recipient, event: EventId) -> Result<Option<Item>, StoreError>;
    /// The stored envelopes of events of a tenant ([`domain::Event::body`]) in the order asked: from the log, else from what was copied aside
    /// when the log row went. `None` for what is in neither.
    async fn envelopes(&self, tenant: &TenantId, events: &[(Seq, EventId)]) -> Result<Vec<Option<Bytes>>, StoreError>;
    /// The envelopes of events that were claimed from an inbox ([`InboxStore::envelopes`]), with what is left of it ([`InboxStore::backlog`]): what
    /// the answer of a claim needs, for stores to read at once.
    async fn envelopes_and_backlog(
        &self,
        recipient: &Recipient,
        events: &[(Seq, EventId)],
        queues: &QueueFilter,
        now: Timestamp,
        most: u64,
    ) -> Result<(Vec<Option<Bytes>>, Backlog), StoreError> {
        let envelopes = self.envelopes(&recipient.tenant, events).await?;
        Ok((envelopes, self.backlog(recipient, queues, now, most).await?))
    }
    /// Inboxes of active tenants whose `next_due` has come by `now`, at most `limit`; tenants take turns, and within a tenant the longest due come first.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Recipient>, StoreError>;
    /// When the next inbox of an active tenant is due.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;
    /// One session.
    async fn session(&self, tenant: &TenantId, id: &AgentSessionId) -> Result<Option<AgentSession>, StoreError>;
    /// What metrics show: of all inboxes, and of at most `tenants` tenants apart.
    async fn totals(&self, tenants: usize) -> Result<InboxTotals, StoreError>;
}

/// Writing inboxes, as part of a transaction.
///
/// Whoever changes an inbox reads its row first ([`InboxWrite::recipient`] locks it until the end of the transaction), so that all changes of one
/// inbox are serial where rows alone would not make them so (`max_in_flight`).
#[async_trait]
pub trait InboxWrite: Send {
    /// The store's clock: what decides about leases and deadlines.
    fn now(&self) -> Timestamp;
    /// The row of an inbox, locked; `None` when there is none. [`StoreError::TenantInactive`] for a tenant that is not active.
    async fn recipient(&mut self, recipient: &Recipient) -> Result<Option<RecipientRow>, StoreError>;
    /// The same for a change that only takes, ends and returns items: stores may let others like it go on at the same time, as long as no two are
    /// answered the same item and the row allows it. Of the row it may raise `head` and bring `next_due` forward; what defers `next_due` may be
    /// lost.
    async fn share_recipient(&mut self, recipient: &Recipient) -> Result<Option<RecipientRow>, StoreError> {
        self.recipient(recipient).await
    }
    /// The row of an inbox, locked; makes it when there is none.
    async fn open_recipient(&mut self, recipient: &Recipient) -> Result<RecipientRow, StoreError>;
    /// Writes everything of the row but its identity.
    async fn save_recipient(&mut self, row: &RecipientRow) -> Result<(), StoreError>;
    /// Items in state `available` in the order of (`claim_key`, event id), at most `limit`. An unreadable row is quarantined on the way and left out.
    async fn available(&mut self, recipient: RecipientNumber, queues: &QueueFilter, limit: usize) -> Result<Vec<Item>, StoreError>;
    /// Items whose [`Item::due_at`] has come by `now`, the longest due first, strictly after `after` (its due time and event), at most `limit`. An
    /// unreadable row is quarantined on the way and left out: one bad row never blocks its neighbours.
    async fn due_items(
        &mut self,
        recipient: RecipientNumber,
        now: Timestamp,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
    ) -> Result<Vec<Item>, StoreError>;
    /// The earliest [`Item::due_at`] of the inbox.
    async fn next_due_item(&mut self, recipient: RecipientNumber) -> Result<Option<Timestamp>, StoreError>;
    /// How many items are claimed, counted up to `most`.
    async fn claimed(&mut self, recipient: RecipientNumber, most: u64) -> Result<u64, StoreError>;
    /// These items in any state, in the order asked.
    async fn find(&mut self, recipient: RecipientNumber, events: &[EventId]) -> Result<Vec<Option<Item>>, StoreError>;
    /// Items that have not ended, by event id.
    async fn matching(&mut self, recipient: RecipientNumber, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError>;
    /// Writes what the machine changed in these items. Those whose state [`AckState::is_ended`] leave the hot table in the same step, and the copy
    /// of their envelope goes with the event's last item. Every item was read in this transaction.
    async fn put(&mut self, items: &[Item]) -> Result<(), StoreError>;
    /// Appends events of the server's own (`inbox.*`) and answers their positions, in order.
    async fn append_inbox(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, StoreError>;
    /// The tenant's lease key; `offered` becomes it when there is none.
    async fn lease_key(&mut self, tenant: &TenantId, offered: &LeaseKey) -> Result<LeaseKey, StoreError>;
    /// What an `Idempotency-Key` of an inbox stands for.
    async fn claim_record(&mut self, recipient: RecipientNumber, key: &str) -> Result<Option<ClaimRecord>, StoreError>;
    /// Stores it, replacing an older one.
    async fn put_claim_record(&mut self, recipient: RecipientNumber, key: &str, record: &ClaimRecord) -> Result<(), StoreError>;
    /// Stores a session, replacing one of the same id of the same inbox. [`StoreError::Conflict`] when the id is another inbox's.
    async fn put_session(&mut self, session: &AgentSession) -> Result<(), StoreError>;
    /// Notes that a session was heard of, with what it has seen and whether it is still active; `false` when there is none of that inbox.
    async fn touch_session(
        &mut self,
        recipient: &Recipient,
        id: &AgentSessionId,
        last_seen: Option<Seq>,
        is_active: bool,
    ) -> Result<bool, StoreError>;
    /// Removes, at most `limit` of each and looking at a small multiple of that: ended items whose end and whose making lie before `ended_before`, claim records made before
    /// `records_before`, sessions not heard of since `sessions_before`; and discards, in the same measure, items of agents that are gone. Answers
    /// whether another call would find more.
    async fn prune_inboxes(
        &mut self,
        ended_before: Timestamp,
        records_before: Timestamp,
        sessions_before: Timestamp,
        limit: usize,
    ) -> Result<bool, StoreError>;
}

/// Everything that a change of an inbox touches, in one transaction.
pub trait InboxTx: InboxWrite + authz::AuditWrite {}
impl<T: InboxWrite + authz::AuditWrite + ?Sized> InboxTx for T {}
