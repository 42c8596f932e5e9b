//! The ports to scheduled events, and the union that publishing needs.

use async_trait::async_trait;
use domain::{Appended, EventId, PrincipalId, Publication, StoreError, TenantId, Timestamp};
use sync::LogWrite;

/// Where a scheduled event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduledState {
    /// Waiting for its time.
    Waiting,
    /// It could not be appended when due (its channel vanished); listed, blocks nobody.
    Failed,
}

/// An event to be appended when due.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The event, complete but for its `seq`.
    pub publication: Publication,
    /// Who published it.
    pub publisher: PrincipalId,
    /// When it is due.
    pub available_at: Timestamp,
}

/// A scheduled event as it is stored.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The event and its time.
    pub schedule: Schedule,
    /// Where it stands.
    pub state: ScheduledState,
    /// Why it failed, as a sentence for people.
    pub failure: Option<String>,
}

/// Reading scheduled events. Each call sees one committed snapshot.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Scheduled events by (due time, id), strictly after `after`, at most `limit`; only those of `publisher` when given.
    async fn scheduled(
        &self,
        tenant: &TenantId,
        publisher: Option<&PrincipalId>,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
    ) -> Result<Vec<Scheduled>, StoreError>;
    /// One scheduled event.
    async fn scheduled_event(&self, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, StoreError>;
    /// Waiting events of active tenants that are due at `now`, oldest first, at most `limit`.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, EventId)>, StoreError>;
    /// When the next waiting event of an active tenant is due.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;
}

/// Writing scheduled events, as part of a transaction.
#[async_trait]
pub trait ScheduleWrite: Send {
    /// Stores an event aside and takes its deduplication key. A known key answers [`Appended::Duplicate`] or [`Appended::Conflict`] and stores nothing;
    /// otherwise the answer is `Ok(None)`.
    async fn schedule(&mut self, tenant: &TenantId, schedule: &Schedule) -> Result<Option<Appended>, StoreError>;
    /// Removes a waiting or failed event and frees its deduplication key; `None` when it is not there (any more).
    async fn cancel(&mut self, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, StoreError>;
    /// Removes a waiting event in order to append it in the same transaction; `None` when it is not there (any more). Its deduplication key stays, and learns the `seq`
    /// from the append, which must not take it for a duplicate.
    async fn promote(&mut self, tenant: &TenantId, id: EventId) -> Result<Option<Schedule>, StoreError>;
    /// Marks a waiting event as failed.
    async fn fail(&mut self, tenant: &TenantId, id: EventId, failure: &str) -> Result<bool, StoreError>;
    /// Whether a channel exists, as this transaction sees it.
    async fn has_channel(&mut self, tenant: &TenantId, channel: &domain::ChannelRef) -> Result<bool, StoreError>;
    /// Whether an enabled agent of this name exists, as this transaction sees it.
    async fn has_agent(&mut self, tenant: &TenantId, agent: &PrincipalId) -> Result<bool, StoreError>;
}

/// Everything that publishing touches, in one transaction.
pub trait PublishTx: LogWrite + ScheduleWrite {}
impl<T: LogWrite + ScheduleWrite + ?Sized> PublishTx for T {}
