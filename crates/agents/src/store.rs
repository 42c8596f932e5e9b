//! The port to the durable cursors (table `agent_consumer_cursors`).

use async_trait::async_trait;
use domain::{ConsumerName, PrincipalId, Seq, SessionId, StoreError, SyncEpoch, TenantId, Timestamp};

/// Names one consumer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The agent.
    pub agent: PrincipalId,
    /// The consumer's name under the agent.
    pub name: ConsumerName,
}

/// Who may move a consumer's cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A gateway session.
    Gateway(SessionId),
    /// REST polls: one fixed marker per consumer, not a process, so that any node answers any poll.
    Rest,
}

/// An event on its way over REST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Its position.
    pub seq: Seq,
    /// When it was dispatched, by the store's clock.
    pub dispatched_at: Timestamp,
}

/// The delivery window of REST polls as the cursor row keeps it (design/stream.md, "REST window").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestWindow {
    /// The highest position checked.
    pub read: Seq,
    /// `highest_sent` before the last page that carried events.
    pub sent_before: Seq,
    /// The first position of that page; [`Seq::ZERO`] when there was none, or it is proven received.
    pub page_first: Seq,
    /// The highest position that the client was ever told in this window, as an event or as `next_cursor`.
    pub highest_sent: Seq,
    /// Positions up to here that are dispatched again carry the flag, if they were dispatched before.
    pub redeliver_up_to: Seq,
    /// Dispatched and not acknowledged, ascending. Up to `read` they are on their way, at most `agent.max_inflight_events`. Above, they were dispatched before delivery restarted;
    /// with those at most twice as many.
    pub in_flight: Vec<InFlight>,
}

/// A consumer's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorRow {
    /// Everything up to here is acknowledged.
    pub acked: Seq,
    /// The epoch of the log in which the row was last served.
    pub epoch: SyncEpoch,
    /// Who holds it; nobody before the first take after a restore.
    pub holder: Option<Holder>,
    /// Raised by every write of the window; what a window write matches.
    pub window_version: u64,
    /// The REST window; empty while a gateway session holds the consumer.
    pub window: RestWindow,
}

/// Taking a consumer.
#[derive(Clone, Debug)]
pub struct Take {
    /// Which.
    pub key: ConsumerKey,
    /// For whom.
    pub holder: Holder,
}

/// What a take found and left.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The row after the take.
    pub row: CursorRow,
    /// Whether this take made the row.
    pub created: bool,
    /// Who held it before; `None` for a new row or one nobody held.
    pub previous: Option<Holder>,
    /// The committed head, read in the same transaction.
    pub head: Seq,
    /// The lowest retained position, read in the same transaction.
    pub floor: Seq,
    /// The log's present epoch, read in the same transaction.
    pub epoch: SyncEpoch,
    /// The store's clock.
    pub now: Timestamp,
}

/// A fenced save or, without `acked`, a mere verification.
#[derive(Clone, Debug)]
pub struct Save {
    /// Which consumer.
    pub key: ConsumerKey,
    /// Who believes to hold it.
    pub holder: Holder,
    /// The acknowledgement to store, if any.
    pub acked: Option<Seq>,
}

/// The outcome of one [`Save`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOutcome {
    /// Still held; the stored acknowledgement after the save (it may be higher: REST acknowledges too).
    Held(Seq),
    /// Another holder took over, or the row is gone: nothing was written.
    Replaced,
}

/// A compare-and-swap of a REST window.
#[derive(Clone, Debug)]
pub struct WindowWrite {
    /// Which consumer.
    pub key: ConsumerKey,
    /// The version that was read.
    pub expected_version: u64,
    /// What to store.
    pub window: RestWindow,
}

/// A row with the log's head, for reporting.
#[derive(Clone, Debug)]
pub struct ConsumerStatus {
    /// Which consumer.
    pub name: ConsumerName,
    /// Its row.
    pub row: CursorRow,
    /// The committed head of the same snapshot.
    pub head: Seq,
    /// The log's epoch in the same snapshot.
    pub epoch: SyncEpoch,
    /// When the row was last written.
    pub updated_at: Timestamp,
}

/// The durable cursors. Every call is one transaction. "The store's clock" is the database's.
#[async_trait]
pub trait CursorStore: Send + Sync {
    /// Takes a consumer: makes the row at the committed head if it is absent (at most `max_consumers` per agent, else
    /// [`StoreError::Conflict`]), else keeps `acked`. A take that changes the holder clears the window and raises `window_version`. Stores the
    /// log's present epoch in the row and `taken_at`. [`StoreError::TenantInactive`] when the tenant is not active or the agent is gone.
    async fn take(&self, take: &Take, max_consumers: usize) -> Result<Taken, StoreError>;
    /// The row, with head and epoch of the same snapshot.
    async fn status(&self, key: &ConsumerKey) -> Result<Option<ConsumerStatus>, StoreError>;
    /// Saves and verifies in one batch, outcomes in the same order. A save matches the holder and never lowers `acked`.
    async fn save(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, StoreError>;
    /// Raises `acked` without regard to the holder and answers the row after it; `None` for an unknown consumer. Never lowers it. Changes nothing when the row's epoch is not the log's.
    async fn ack(&self, key: &ConsumerKey, seq: Seq) -> Result<Option<ConsumerStatus>, StoreError>;
    /// Moves `acked` to `seq` for the holder and clears the window (resync only). It goes down only from above the log's head: an
    /// acknowledgement that was stored meanwhile stays. Answers what is stored.
    async fn restart(&self, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, StoreError>;
    /// Stores a window iff the REST holder still holds the row and its version is the expected one; raises the version.
    async fn write_window(&self, write: &WindowWrite) -> Result<bool, StoreError>;
    /// The consumers of an agent by name, strictly after `after`, at most `limit`.
    async fn list(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        after: Option<&ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerStatus>, StoreError>;
    /// Consumers taken at or after `since` (store clock), with their holder: how a quiet session learns that another node took over.
    async fn taken_since(&self, since: Timestamp) -> Result<Vec<(ConsumerKey, Option<Holder>)>, StoreError>;
}
