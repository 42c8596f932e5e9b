//! Lease keys, and what an `Idempotency-Key` of a claim stands for.

use domain::{EventId, TenantId};
use inbox::{ClaimRecord, Generation, LeaseKey, RecipientNumber};
use rusqlite::params;
use uuid::Uuid;

use crate::codec;
use crate::failure::Failure;
use crate::identity::first;
use crate::sql::sql;
use crate::tx::WriteTx;

/// Bytes of one claim: the event, then the generation.
const CLAIM: usize = 24;

/// The tenant's lease key; `offered` becomes it when there is none.
pub(super) fn lease_key(tx: &mut WriteTx, tenant: &TenantId, offered: &LeaseKey) -> Result<LeaseKey, Failure> {
    let head = tx.active_head(tenant)?;
    let stored = first(tx.prepare(sql!("inbox/lease_key"))?.query([head.number])?, |row| codec::digest(row, 0))?;
    if let Some(bytes) = stored {
        return Ok(LeaseKey::new(bytes));
    }
    tx.prepare(sql!("inbox/put_lease_key"))?.execute(params![head.number, offered.as_bytes()])?;
    Ok(offered.clone())
}

/// What a key stands for.
pub(super) fn record(tx: &WriteTx, recipient: RecipientNumber, key: &str) -> Result<Option<ClaimRecord>, Failure> {
    let mut statement = tx.prepare(sql!("inbox/claim_record"))?;
    first(statement.query(params![recipient.get(), key])?, |row| {
        let claims = row.get_ref(1)?.as_blob().ok().and_then(decode);
        Ok(ClaimRecord {
            request_hash: codec::digest(row, 0)?,
            claims: claims.ok_or_else(|| Failure::corrupt("a record of claims that cannot be read"))?,
            created_at: codec::timestamp(row, 2)?,
        })
    })
}

/// Stores it, replacing an older one.
pub(super) fn put_record(tx: &WriteTx, recipient: RecipientNumber, key: &str, record: &ClaimRecord) -> Result<(), Failure> {
    let values = params![recipient.get(), key, record.request_hash, encode(&record.claims), record.created_at.as_micros()];
    tx.prepare(sql!("inbox/put_claim_record"))?.execute(values)?;
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
