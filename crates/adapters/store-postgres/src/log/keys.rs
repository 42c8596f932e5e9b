//! Deduplication keys of events that wait for their time. Those of appended events are the append function's.

use domain::{Appended, Deduplication, EventId, TenantId};

use crate::codec;
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

/// What the stored row of a key says to the event `id`; `None` when there is none that counts. The caller holds the head row.
pub(crate) async fn stored_repeat(
    tx: &mut WriteTx,
    tenant_number: i64,
    id: EventId,
    deduplication: &Deduplication,
) -> Result<Option<Appended>, Failure> {
    let now = tx.now();
    let known = db::query(sql!("sync/known_key"))
        .bind(tenant_number)
        .bind(deduplication.key.as_str())
        .bind(id.uuid())
        .bind(now.as_micros())
        .fetch_optional(tx.connection())
        .await?;
    let Some(row) = known else { return Ok(None) };
    let first = Appended::Duplicate { id: EventId::new(codec::uuid(&row, 0)?), seq: codec::optional_seq(&row, 1)? };
    let same = codec::digest(&row, 2)? == deduplication.body_hash;
    Ok(Some(if same { first } else { Appended::Conflict }))
}

/// Takes a key for an event that waits. The caller holds the head row.
pub(crate) async fn reserve_key(tx: &mut WriteTx, tenant_number: i64, id: EventId, deduplication: &Deduplication) -> Result<(), Failure> {
    db::query(sql!("sync/reserve_key"))
        .bind(tenant_number)
        .bind(deduplication.key.as_str())
        .bind(deduplication.body_hash.as_slice())
        .bind(id.uuid())
        .bind(deduplication.expires_at.as_micros())
        .execute(tx.connection())
        .await?;
    Ok(())
}

/// Frees the key of an event that waited and will not come.
pub(crate) async fn free_key(tx: &mut WriteTx, tenant: &TenantId, id: EventId, deduplication: &Deduplication) -> Result<(), Failure> {
    let number = tx.log_head(tenant).await?.number;
    let free = db::query(sql!("sync/free_key")).bind(number).bind(deduplication.key.as_str()).bind(id.uuid());
    free.execute(tx.connection()).await?;
    Ok(())
}
