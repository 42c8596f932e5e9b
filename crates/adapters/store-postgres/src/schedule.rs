//! Scheduled events: kept aside with their deduplication keys until they are due.
//!
//! Taking one out and promoting it is one statement that deletes the row: of two nodes that try, one gets it.

mod rows;

use async_trait::async_trait;
use authz::PrincipalKind;
use domain::{Appended, ChannelRef, EventId, PrincipalId, StoreError, TenantId, Timestamp};
use intake::{Schedule, ScheduleStore, ScheduleWrite, Scheduled};

use crate::codec::{self, audience_text};
use crate::db::{self, Session};
use crate::failure::Failure;
use crate::identity::{self, collect};
use crate::log;
use crate::sql::sql;
use crate::store::{PostgresStore, transactions};
use crate::tx::WriteTx;

transactions!(dyn intake::PublishTx);

/// Stores an event aside and takes its key, unless the key is known.
async fn schedule(tx: &mut WriteTx, tenant: &TenantId, schedule: &Schedule) -> Result<Option<Appended>, Failure> {
    let publication = &schedule.publication;
    let head = match &publication.deduplication {
        // Whoever takes a key holds the head: of two that take the same one, the second sees the first.
        Some(_) => tx.lock_head(tenant).await?,
        None => tx.log_head(tenant).await?,
    };
    if !head.is_active() {
        return Err(StoreError::TenantInactive.into());
    }
    if let Some(deduplication) = &publication.deduplication {
        let known = log::stored_repeat(tx, head.number, publication.id, deduplication).await?;
        if known.is_some() {
            return Ok(known);
        }
        log::reserve_key(tx, head.number, publication.id, deduplication).await?;
    }
    insert(tx, tenant, schedule).await?;
    Ok(None)
}

async fn insert(tx: &mut WriteTx, tenant: &TenantId, schedule: &Schedule) -> Result<(), Failure> {
    let publication = &schedule.publication;
    let deduplication = publication.deduplication.as_ref();
    let inserted = db::query(sql!("intake/schedule"))
        .bind(tenant.as_str())
        .bind(publication.id.uuid())
        .bind(schedule.available_at.as_micros())
        .bind(schedule.publisher.as_str())
        .bind(publication.event_type.as_str())
        .bind(publication.channel.as_ref().map(ChannelRef::as_str))
        .bind(audience_text(&publication.audience))
        .bind(log::origin_number(publication.origin))
        .bind(publication.created_at.as_micros())
        .bind(deduplication.map(|deduplication| deduplication.key.as_str()))
        .bind(deduplication.map(|deduplication| deduplication.body_hash.as_slice()))
        .bind(deduplication.map(|deduplication| deduplication.expires_at.as_micros()))
        .bind(log::body_text(&publication.body)?)
        .bind(rows::work_text(publication.work.as_deref())?)
        .execute(tx.connection())
        .await?;
    match inserted.rows_affected() {
        0 => Err(StoreError::Conflict("the event is scheduled").into()),
        _ => Ok(()),
    }
}

/// Removes a waiting or failed event and frees its key.
async fn cancel(tx: &mut WriteTx, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, Failure> {
    let removed = db::query(sql!("intake/cancel")).bind(tenant.as_str()).bind(id.uuid()).fetch_optional(tx.connection()).await?;
    let Some(scheduled) = removed.as_ref().map(rows::scheduled).transpose()? else { return Ok(None) };
    if let Some(deduplication) = &scheduled.schedule.publication.deduplication {
        log::free_key(tx, tenant, id, deduplication).await?;
    }
    Ok(Some(scheduled))
}

async fn find(connection: &mut Session, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, Failure> {
    let found = db::query(sql!("intake/event")).bind(tenant.as_str()).bind(id.uuid()).fetch_optional(connection).await?;
    found.as_ref().map(rows::scheduled).transpose()
}

/// Marks a waiting event as failed.
async fn fail(tx: &mut WriteTx, tenant: &TenantId, id: EventId, failure: &str) -> Result<bool, Failure> {
    let failed = db::query(sql!("intake/fail")).bind(tenant.as_str()).bind(id.uuid()).bind(failure).execute(tx.connection()).await?;
    Ok(failed.rows_affected() > 0)
}

/// Removes a waiting event that the caller appends in the same transaction. Its key stays and learns the `seq` from the append.
async fn promote(tx: &mut WriteTx, tenant: &TenantId, id: EventId) -> Result<Option<Schedule>, Failure> {
    let removed = db::query(sql!("intake/promote")).bind(tenant.as_str()).bind(id.uuid()).fetch_optional(tx.connection()).await?;
    Ok(removed.as_ref().map(rows::scheduled).transpose()?.map(|scheduled| scheduled.schedule))
}

#[async_trait]
impl ScheduleWrite for WriteTx {
    async fn schedule(&mut self, tenant: &TenantId, schedule: &Schedule) -> Result<Option<Appended>, StoreError> {
        Ok(self::schedule(self, tenant, schedule).await?)
    }

    async fn cancel(&mut self, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, StoreError> {
        Ok(cancel(self, tenant, id).await?)
    }

    async fn promote(&mut self, tenant: &TenantId, id: EventId) -> Result<Option<Schedule>, StoreError> {
        Ok(promote(self, tenant, id).await?)
    }

    async fn fail(&mut self, tenant: &TenantId, id: EventId, failure: &str) -> Result<bool, StoreError> {
        Ok(fail(self, tenant, id, failure).await?)
    }

    async fn has_channel(&mut self, tenant: &TenantId, channel: &ChannelRef) -> Result<bool, StoreError> {
        Ok(identity::channel_exists(self.connection(), tenant, channel).await?)
    }

    async fn has_agent(&mut self, tenant: &TenantId, agent: &PrincipalId) -> Result<bool, StoreError> {
        let found = identity::principal(self.connection(), tenant, agent).await?;
        Ok(found.is_some_and(|principal| principal.enabled && principal.kind == PrincipalKind::Agent))
    }
}

impl PostgresStore {
    async fn list_scheduled(
        &self,
        tenant: &TenantId,
        publisher: Option<&PrincipalId>,
        (time, id): (Timestamp, EventId),
        limit: usize,
    ) -> Result<Vec<Scheduled>, Failure> {
        let mut connection = self.reader().await?;
        let list = db::query(sql!("intake/list"))
            .bind(tenant.as_str())
            .bind(time.as_micros())
            .bind(id.uuid())
            .bind(publisher.map(PrincipalId::as_str))
            .bind(codec::from_count(limit));
        collect(&list.fetch_all(&mut *connection).await?, rows::scheduled)
    }

    async fn list_due(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, EventId)>, Failure> {
        let mut connection = self.reader().await?;
        let due = db::query(sql!("union/due")).bind(now.as_micros()).bind(codec::from_count(limit));
        collect(&due.fetch_all(&mut *connection).await?, |row| Ok((codec::text(row, 0)?, EventId::new(codec::uuid(row, 1)?))))
    }

    async fn first_due(&self) -> Result<Option<Timestamp>, Failure> {
        let mut connection = self.reader().await?;
        let first = db::query(sql!("union/next_due")).fetch_optional(&mut *connection).await?;
        first.as_ref().map(|row| codec::timestamp(row, 0)).transpose()
    }

    async fn find_scheduled(&self, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, Failure> {
        let mut connection = self.reader().await?;
        find(&mut connection, tenant, id).await
    }
}

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn scheduled(
        &self,
        tenant: &TenantId,
        publisher: Option<&PrincipalId>,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
    ) -> Result<Vec<Scheduled>, StoreError> {
        let after = after.unwrap_or((Timestamp::from_micros(i64::MIN), EventId::new(uuid::Uuid::nil())));
        Ok(self.list_scheduled(tenant, publisher, after, limit).await?)
    }

    async fn scheduled_event(&self, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, StoreError> {
        Ok(self.find_scheduled(tenant, id).await?)
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, EventId)>, StoreError> {
        Ok(self.list_due(now, limit).await?)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.first_due().await?)
    }
}
