//! Staged events: what applications handed in by `doorstep_publish`, until it is in the log.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::{ChannelRef, EventId, PrincipalId, StoreError, TenantId, Timestamp};
use intake::{PublishLimits, Staged, StagedNumber, StagedState, StagedStore, StagedWrite};

use crate::codec;
use crate::db::{self, PgRow};
use crate::failure::Failure;
use crate::identity::{self, collect};
use crate::sql::sql;
use crate::store::{PostgresStore, transactions};
use crate::tx::WriteTx;

transactions!(dyn intake::MoveTx);

fn state(word: &str) -> Option<StagedState> {
    match word {
        "waiting" => Some(StagedState::Waiting),
        "failed" => Some(StagedState::Failed),
        _ => None,
    }
}

/// `number, event_id, publisher, event, staged_at, state, failure`.
fn staged(row: &PgRow) -> Result<Staged, Failure> {
    Ok(Staged {
        number: StagedNumber(codec::natural(row, 0)?),
        id: EventId::new(codec::uuid(row, 1)?),
        publisher: codec::text(row, 2)?,
        event: codec::get(row, 3)?,
        staged_at: codec::timestamp(row, 4)?,
        state: codec::word(row, 5, state)?,
        failure: codec::get(row, 6)?,
    })
}

fn number(number: StagedNumber) -> i64 {
    codec::from_natural(number.0)
}

/// Locks the head row first: the statement after it sees what every earlier mover committed, and whatever applications have by now.
async fn lock(tx: &mut WriteTx, tenant: &TenantId, limit: usize) -> Result<Vec<Staged>, Failure> {
    if !tx.lock_head(tenant).await?.is_active() {
        return Err(StoreError::TenantInactive.into());
    }
    let waiting = db::query(sql!("intake/waiting_staged")).bind(tenant.as_str()).bind(codec::from_count(limit));
    collect(&waiting.fetch_all(tx.connection()).await?, staged)
}

async fn remove(tx: &mut WriteTx, tenant: &TenantId, numbers: &[StagedNumber]) -> Result<(), Failure> {
    if numbers.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i64> = numbers.iter().copied().map(number).collect();
    db::query(sql!("intake/remove_staged")).bind(tenant.as_str()).bind(numbers).execute(tx.connection()).await?;
    Ok(())
}

async fn fail(tx: &mut WriteTx, tenant: &TenantId, at: Timestamp, failed: &[(StagedNumber, String)]) -> Result<(), Failure> {
    let numbers: Vec<i64> = failed.iter().map(|(place, _)| number(*place)).collect();
    // A sentence may repeat what an application wrote; a text has no NUL.
    let failures: Vec<String> = failed.iter().map(|(_, failure)| failure.replace('\0', "\u{FFFD}")).collect();
    let fail = db::query(sql!("intake/fail_staged")).bind(tenant.as_str()).bind(at.as_micros()).bind(numbers).bind(failures);
    fail.execute(tx.connection()).await?;
    Ok(())
}

async fn purge(tx: &mut WriteTx, before: Timestamp, limit: usize) -> Result<u64, Failure> {
    let purge = db::query(sql!("intake/purge_staged")).bind(before.as_micros()).bind(codec::from_count(limit));
    Ok(purge.execute(tx.connection()).await?.rows_affected())
}

async fn put_limits(tx: &mut WriteTx, limits: &PublishLimits) -> Result<(), Failure> {
    db::query(sql!("intake/put_publish_limits"))
        .bind(codec::from_natural(limits.payload_bytes))
        .bind(codec::from_natural(limits.depth))
        .bind(codec::from_natural(limits.audience))
        .bind(codec::from_natural(limits.recipients))
        .bind(codec::from_natural(limits.correlation_entries))
        .bind(codec::from_natural(limits.correlation_chars))
        .bind(codec::from_natural(limits.schedule_horizon))
        .execute(tx.connection())
        .await?;
    Ok(())
}

#[async_trait]
impl StagedWrite for WriteTx {
    async fn lock_staged(&mut self, tenant: &TenantId, limit: usize) -> Result<Vec<Staged>, StoreError> {
        Ok(lock(self, tenant, limit).await?)
    }

    async fn remove_staged(&mut self, tenant: &TenantId, numbers: &[StagedNumber]) -> Result<(), StoreError> {
        Ok(remove(self, tenant, numbers).await?)
    }

    async fn fail_staged(&mut self, tenant: &TenantId, at: Timestamp, failed: &[(StagedNumber, String)]) -> Result<(), StoreError> {
        Ok(fail(self, tenant, at, failed).await?)
    }

    async fn existing_channels(&mut self, tenant: &TenantId, channels: &BTreeSet<ChannelRef>) -> Result<BTreeSet<ChannelRef>, StoreError> {
        Ok(identity::existing_channels(self.connection(), tenant, channels).await?)
    }

    async fn existing_agents(&mut self, tenant: &TenantId, agents: &BTreeSet<PrincipalId>) -> Result<BTreeSet<PrincipalId>, StoreError> {
        Ok(identity::existing_agents(self.connection(), tenant, agents).await?)
    }

    async fn purge_staged(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        Ok(purge(self, before, limit).await?)
    }

    async fn put_publish_limits(&mut self, limits: &PublishLimits) -> Result<(), StoreError> {
        Ok(put_limits(self, limits).await?)
    }
}

impl PostgresStore {
    async fn list_staged_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, Failure> {
        let mut connection = self.reader().await?;
        let tenants = db::query(sql!("union/staged_tenants")).bind(after.map_or("", TenantId::as_str)).bind(codec::from_count(limit));
        collect(&tenants.fetch_all(&mut *connection).await?, |row| codec::text(row, 0))
    }

    async fn list_staged(
        &self,
        tenant: &TenantId,
        publisher: Option<&PrincipalId>,
        after: Option<StagedNumber>,
        limit: usize,
    ) -> Result<Vec<Staged>, Failure> {
        let mut connection = self.reader().await?;
        let list = db::query(sql!("intake/list_staged"))
            .bind(tenant.as_str())
            .bind(after.map_or(0, number))
            .bind(publisher.map(PrincipalId::as_str))
            .bind(codec::from_count(limit));
        collect(&list.fetch_all(&mut *connection).await?, staged)
    }
}

#[async_trait]
impl StagedStore for PostgresStore {
    async fn tenants_with_staged(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError> {
        Ok(self.list_staged_tenants(after, limit).await?)
    }

    async fn staged(
        &self,
        tenant: &TenantId,
        publisher: Option<&PrincipalId>,
        after: Option<StagedNumber>,
        limit: usize,
    ) -> Result<Vec<Staged>, StoreError> {
        Ok(self.list_staged(tenant, publisher, after, limit).await?)
    }
}
