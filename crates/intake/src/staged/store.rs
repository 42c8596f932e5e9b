//! The ports to staged events: what applications handed in by `doorstep_publish`, in the database that holds the store too.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::{ChannelRef, EventId, PrincipalId, StoreError, TenantId, Timestamp};
use sync::LogWrite;

use crate::{ScheduleWrite, Settings};

/// The place of a staged event among all that were ever staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StagedNumber(pub u64);

/// Where a staged event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagedState {
    /// On its way into the log.
    Waiting,
    /// It could not be appended; listed, blocks nobody.
    Failed,
}

/// An event that an application handed in, together with rows of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// Its place.
    pub number: StagedNumber,
    /// The event's identity, which the application was told.
    pub id: EventId,
    /// The role of the database that handed it in: the event's actor, an app.
    pub publisher: PrincipalId,
    /// The event as it was handed in: a JSON object.
    pub event: String,
    /// When it was handed in; its transaction was committed later.
    pub staged_at: Timestamp,
    /// Where it stands.
    pub state: StagedState,
    /// Why it failed, as a sentence for people.
    pub failure: Option<String>,
}

/// What the database holds events against when they are handed in: the same as the other doors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishLimits {
    /// `publish.max_payload_bytes`.
    pub payload_bytes: u64,
    /// `publish.max_depth`.
    pub depth: u64,
    /// `publish.max_audience`.
    pub audience: u64,
    /// `publish.max_recipients`.
    pub recipients: u64,
    /// `publish.max_correlation_entries`.
    pub correlation_entries: u64,
    /// `publish.max_correlation_chars`.
    pub correlation_chars: u64,
    /// `intake.schedule_horizon`, in microseconds.
    pub schedule_horizon: u64,
}

impl From<&Settings> for PublishLimits {
    fn from(settings: &Settings) -> Self {
        Self {
            payload_bytes: settings.max_payload_bytes as u64,
            depth: settings.max_depth as u64,
            audience: settings.max_audience as u64,
            recipients: settings.max_recipients as u64,
            correlation_entries: settings.max_correlation_entries as u64,
            correlation_chars: settings.max_correlation_chars as u64,
            schedule_horizon: u64::try_from(settings.schedule_horizon.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// Reading staged events. Each call sees one committed snapshot.
#[async_trait]
pub trait StagedStore: Send + Sync {
    /// Active tenants with waiting events, by id, strictly after `after`, at most `limit`.
    async fn tenants_with_staged(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError>;
    /// Staged events by number, strictly after `after`, at most `limit`; only those of `publisher` when given.
    async fn staged(
        &self,
        tenant: &TenantId,
        publisher: Option<&PrincipalId>,
        after: Option<StagedNumber>,
        limit: usize,
    ) -> Result<Vec<Staged>, StoreError>;
}

/// Writing staged events, as part of a transaction.
#[async_trait]
pub trait StagedWrite: Send {
    /// Locks the tenant's log and answers, as they are visible from then on, the first waiting events by number, at most `limit`. Nobody else moves
    /// events of the tenant until the transaction ends, so that of two commits the first one's events come first.
    async fn lock_staged(&mut self, tenant: &TenantId, limit: usize) -> Result<Vec<Staged>, StoreError>;
    /// Removes events that are in the log, scheduled, or there already.
    async fn remove_staged(&mut self, tenant: &TenantId, numbers: &[StagedNumber]) -> Result<(), StoreError>;
    /// Marks waiting events as failed, each with its reason.
    async fn fail_staged(&mut self, tenant: &TenantId, at: Timestamp, failed: &[(StagedNumber, String)]) -> Result<(), StoreError>;
    /// Those of these channels that exist, as this transaction sees it.
    async fn existing_channels(&mut self, tenant: &TenantId, channels: &BTreeSet<ChannelRef>) -> Result<BTreeSet<ChannelRef>, StoreError>;
    /// Those of these names that are enabled agents', as this transaction sees it.
    async fn existing_agents(&mut self, tenant: &TenantId, agents: &BTreeSet<PrincipalId>) -> Result<BTreeSet<PrincipalId>, StoreError>;
    /// Removes events that failed before `before`, of any tenant, at most `limit`; answers how many.
    async fn purge_staged(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
    /// Has the database hold what is handed in from now on against these limits.
    async fn put_publish_limits(&mut self, limits: &PublishLimits) -> Result<(), StoreError>;
}

/// Everything that moving touches, in one transaction.
pub trait MoveTx: LogWrite + ScheduleWrite + StagedWrite {}
impl<T: LogWrite + ScheduleWrite + StagedWrite + ?Sized> MoveTx for T {}

/// No application shares the database with this store: nothing is ever staged.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStaged;

#[async_trait]
impl StagedStore for NoStaged {
    async fn tenants_with_staged(&self, _: Option<&TenantId>, _: usize) -> Result<Vec<TenantId>, StoreError> {
        Ok(Vec::new())
    }

    async fn staged(&self, _: &TenantId, _: Option<&PrincipalId>, _: Option<StagedNumber>, _: usize) -> Result<Vec<Staged>, StoreError> {
        Ok(Vec::new())
    }
}
