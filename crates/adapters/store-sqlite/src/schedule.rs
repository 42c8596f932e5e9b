//! Scheduled events: kept aside with their deduplication keys until they are due.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    Appended, Audience, ChannelRef, Deduplication, DeduplicationKey, EventId, PrincipalId, Publication, StoreError, TenantId, Timestamp,
    Work,
};
use intake::{Schedule, ScheduleStore, Scheduled, ScheduledState};
use rusqlite::{Connection, Row, params};

use crate::codec::{self, audience_text, parse_audience};
use crate::failure::Failure;
use crate::identity::{collect, first};
use crate::log;
use crate::sql::sql;
use crate::store::SqliteStore;
use crate::tx::WriteTx;

/// Stores an event aside and takes its key, unless the key is known.
pub(crate) fn schedule(tx: &mut WriteTx, tenant: &TenantId, schedule: &Schedule) -> Result<Option<Appended>, Failure> {
    let head = tx.active_head(tenant)?;
    let now = tx.now();
    let publication = &schedule.publication;
    if let Some(deduplication) = &publication.deduplication {
        let known = log::stored_repeat(tx.connection(), head.number, publication.id, deduplication, now)?;
        if known.is_some() {
            return Ok(known);
        }
        log::put_key(tx.connection(), head.number, publication.id, None, deduplication)?;
    }
    insert(tx, tenant, schedule)?;
    Ok(None)
}

fn insert(tx: &WriteTx, tenant: &TenantId, schedule: &Schedule) -> Result<(), Failure> {
    let publication = &schedule.publication;
    let deduplication = publication.deduplication.as_ref();
    let values = params![
        tenant.as_str(),
        publication.id.uuid().into_bytes(),
        schedule.available_at.as_micros(),
        schedule.publisher.as_str(),
        publication.event_type.as_str(),
        publication.channel.as_ref().map(ChannelRef::as_str),
        audience_text(&publication.audience),
        log::origin_number(publication.origin),
        publication.created_at.as_micros(),
        deduplication.map(|deduplication| deduplication.key.as_str()),
        deduplication.map(|deduplication| deduplication.body_hash),
        deduplication.map(|deduplication| deduplication.expires_at.as_micros()),
        log::body_text(&publication.body)?,
        work_text(publication.work.as_deref())?,
    ];
    match tx.prepare(sql!("intake/schedule"))?.execute(values).map_err(Failure::from) {
        Err(failure) if failure.is_unique() => Err(StoreError::Conflict("the event is scheduled").into()),
        outcome => outcome.map(|_| ()),
    }
}

/// Removes a waiting or failed event and frees its key.
pub(crate) fn cancel(tx: &mut WriteTx, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, Failure> {
    let Some(scheduled) = find(tx.connection(), tenant, id)? else { return Ok(None) };
    if let Some(deduplication) = &scheduled.schedule.publication.deduplication {
        let head = tx.log_head(tenant)?;
        let values = params![head.number, deduplication.key.as_str(), id.uuid().into_bytes()];
        tx.prepare(sql!("sync/free_key"))?.execute(values)?;
    }
    remove(tx, tenant, id)?;
    Ok(Some(scheduled))
}

/// Removes a waiting event that the caller appends in the same transaction. Its key stays and learns the `seq` from the append.
pub(crate) fn promote(tx: &WriteTx, tenant: &TenantId, id: EventId) -> Result<Option<Schedule>, Failure> {
    let waiting = find(tx.connection(), tenant, id)?.filter(|scheduled| scheduled.state == ScheduledState::Waiting);
    let Some(scheduled) = waiting else { return Ok(None) };
    remove(tx, tenant, id)?;
    Ok(Some(scheduled.schedule))
}

/// Marks a waiting event as failed.
pub(crate) fn fail(tx: &WriteTx, tenant: &TenantId, id: EventId, failure: &str) -> Result<bool, Failure> {
    let values = params![tenant.as_str(), id.uuid().into_bytes(), failure];
    Ok(tx.prepare(sql!("intake/fail"))?.execute(values)? > 0)
}

fn remove(tx: &WriteTx, tenant: &TenantId, id: EventId) -> Result<(), Failure> {
    tx.prepare(sql!("intake/remove"))?.execute(params![tenant.as_str(), id.uuid().into_bytes()])?;
    Ok(())
}

fn find(connection: &Connection, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, Failure> {
    let mut statement = connection.prepare_cached(sql!("intake/event"))?;
    first(statement.query(params![tenant.as_str(), id.uuid().into_bytes()])?, from_row)
}

fn from_row(row: &Row<'_>) -> Result<Scheduled, Failure> {
    let publication = Publication {
        id: EventId::new(codec::uuid(row, 0)?),
        event_type: codec::text(row, 5)?,
        channel: codec::optional_text(row, 6)?,
        audience: audience(row, 7)?,
        origin: log::parse_origin(row.get(8)?).ok_or_else(|| Failure::corrupt("a scheduled event of unknown origin"))?,
        created_at: codec::timestamp(row, 9)?,
        deduplication: deduplication(row)?,
        body: row.get::<_, String>(13)?.into(),
        work: work(row, 14)?,
    };
    let schedule = Schedule { publication, publisher: codec::text(row, 2)?, available_at: codec::timestamp(row, 1)? };
    Ok(Scheduled { schedule, state: codec::word(row, 3, parse_state)?, failure: row.get(4)? })
}

fn audience(row: &Row<'_>, column: usize) -> Result<Audience, Failure> {
    match row.get::<_, Option<String>>(column)? {
        Some(text) => parse_audience(&text).ok_or_else(|| Failure::corrupt("a scheduled event with an unreadable audience")),
        None => Ok(Audience::default()),
    }
}

/// What the event will leave in inboxes, as its column holds it.
fn work_text(work: Option<&Work>) -> Result<Option<String>, Failure> {
    let text = work.map(serde_json::to_string).transpose();
    text.map_err(|_| StoreError::Conflict("the work of a scheduled event cannot be written").into())
}

fn work(row: &Row<'_>, column: usize) -> Result<Option<Arc<Work>>, Failure> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    let work = serde_json::from_str(&text).map_err(|_| Failure::corrupt("a scheduled event with unreadable work"))?;
    Ok(Some(Arc::new(work)))
}

fn deduplication(row: &Row<'_>) -> Result<Option<Deduplication>, Failure> {
    let Some(key) = codec::optional_text::<DeduplicationKey>(row, 10)? else { return Ok(None) };
    Ok(Some(Deduplication { key, body_hash: codec::digest(row, 11)?, expires_at: codec::timestamp(row, 12)? }))
}

fn parse_state(word: &str) -> Option<ScheduledState> {
    match word {
        "waiting" => Some(ScheduledState::Waiting),
        "failed" => Some(ScheduledState::Failed),
        _ => None,
    }
}

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn scheduled(
        &self,
        tenant: &TenantId,
        publisher: Option<&PrincipalId>,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
    ) -> Result<Vec<Scheduled>, StoreError> {
        let (tenant, publisher) = (tenant.clone(), publisher.cloned());
        let (time, id) = after.unwrap_or((Timestamp::from_micros(i64::MIN), EventId::new(uuid::Uuid::nil())));
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("intake/list"))?;
            let values = params![
                tenant.as_str(),
                time.as_micros(),
                id.uuid().into_bytes(),
                publisher.as_ref().map(PrincipalId::as_str),
                codec::from_count(limit),
            ];
            collect(statement.query(values)?, from_row)
        })
        .await
    }

    async fn scheduled_event(&self, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |tx| find(tx.connection(), &tenant, id)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, EventId)>, StoreError> {
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("union/due"))?;
            let rows = statement.query(params![now.as_micros(), codec::from_count(limit)])?;
            collect(rows, |row| Ok((codec::text(row, 0)?, EventId::new(codec::uuid(row, 1)?))))
        })
        .await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|tx| first(tx.prepare(sql!("union/next_due"))?.query([])?, |row| codec::timestamp(row, 0))).await
    }
}
