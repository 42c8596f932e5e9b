//! Lease keys, and what an `Idempotency-Key` of a claim stands for.

use domain::{EventId, TenantId};
use inbox::{ClaimRecord, Generation, LeaseKey, RecipientNumber};
use sqlx_postgres::PgRow;
use uuid::Uuid;

use super::tenant_number;
use crate::codec;
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

/// Bytes of one claim: the event, then the generation.
const CLAIM: usize = 24;

/// The tenant's lease key; `offered` becomes it when there is none.
pub(super) async fn lease_key(tx: &mut WriteTx, tenant: &TenantId, offered: &LeaseKey) -> Result<LeaseKey, Failure> {
    if let Some(known) = tx.inboxes().of_tenant(tenant).and_then(|locked| locked.lease_key.clone()) {
        return Ok(known);
    }
    let head = tx.active_head(tenant).await?;
    let put = db::query(sql!("inbox/put_lease_key")).bind(head.number).bind(offered.as_bytes().as_slice());
    put.execute(tx.connection()).await?;
    let row = db::query(sql!("inbox/lease_key")).bind(head.number).fetch_one(tx.connection()).await?;
    let key = LeaseKey::new(codec::digest(&row, 0)?);
    if let Some(locked) = tx.inboxes().of_tenant(tenant) {
        locked.lease_key = Some(key.clone());
    }
    Ok(key)
}

/// What a key stands for. Whoever shares the inbox waits for others with the same key.
pub(super) async fn record(tx: &mut WriteTx, recipient: RecipientNumber, key: &str) -> Result<Option<ClaimRecord>, Failure> {
    if !tx.inboxes().is_exclusive(recipient) {
        db::query(sql!("inbox/lock_claim_key")).bind(recipient.get()).bind(key).execute(tx.connection()).await?;
    }
    let query = db::query(sql!("inbox/claim_record")).bind(tenant_number(recipient)).bind(recipient.get()).bind(key);
    query.fetch_optional(tx.connection()).await?.as_ref().map(record_row).transpose()
}

fn record_row(row: &PgRow) -> Result<ClaimRecord, Failure> {
    let claims = decode(codec::get(row, 1)?).ok_or_else(|| Failure::corrupt("a record of claims that cannot be read"))?;
    Ok(ClaimRecord { request_hash: codec::digest(row, 0)?, claims, created_at: codec::timestamp(row, 2)? })
}

/// Stores it, replacing an older one.
pub(super) async fn put_record(tx: &mut WriteTx, recipient: RecipientNumber, key: &str, record: &ClaimRecord) -> Result<(), Failure> {
    let query = db::query(sql!("inbox/put_claim_record")).bind(tenant_number(recipient)).bind(recipient.get()).bind(key);
    let query = query.bind(record.request_hash.as_slice()).bind(encode(&record.claims)).bind(record.created_at.as_micros());
    query.execute(tx.connection()).await?;
    Ok(())
}

fn encode(claims: &[(EventId, Generation)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(claims.len() * CLAIM);
    for (event, generation) in claims {
        bytes.extend_from_slice(event.uuid().as_bytes());
        bytes.extend_from_slice(&generation.get().to_be_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<Vec<(EventId, Generation)>> {
    let (claims, rest) = bytes.as_chunks::<CLAIM>();
    let claim = |claim: &[u8; CLAIM]| {
        let (event, generation) = claim.split_at(16);
        Some((EventId::new(Uuid::from_slice(event).ok()?), Generation::new(u64::from_be_bytes(generation.try_into().ok()?))))
    };
    if rest.is_empty() { claims.iter().map(claim).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use domain::EventId;
    use inbox::Generation;
    use uuid::Uuid;

    use super::{decode, encode};

    #[test]
    fn claims_come_back_as_they_were_and_half_a_claim_is_none() {
        let claims = vec![(EventId::new(Uuid::from_u128(7)), Generation::new(1)), (EventId::new(Uuid::max()), Generation::new(u64::MAX))];
        let bytes = encode(&claims);
        assert_eq!(decode(&bytes), Some(claims));
        assert_eq!(decode(&[]), Some(Vec::new()));
        assert_eq!(decode(&bytes[..25]), None);
    }
}
