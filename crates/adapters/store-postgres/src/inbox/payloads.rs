//! Copies of envelopes whose log row goes before their items do.
//!
//! A copy goes when no item of its event is left; items of an old event only ever get fewer, so nothing that is needed goes. One that nobody needs
//! any more and that was overlooked, because two items ended at the same moment or just when it was made, goes with the pruning.

use std::collections::HashMap;

use bytes::Bytes;
use domain::{EventId, Seq};
use inbox::{Item, RecipientNumber};
use uuid::Uuid;

use super::tenant_number;
use crate::codec::{self, from_seq};
use crate::db::{self, PgRow, Session};
use crate::failure::Failure;
use crate::log;
use crate::sql::sql;
use crate::tx::WriteTx;

/// CRC-32 over tenant, seq, id and body.
pub(crate) fn checksum(tenant_number: i64, seq: i64, id: Uuid, body: &str) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&tenant_number.to_le_bytes());
    hasher.update(&seq.to_le_bytes());
    hasher.update(id.as_bytes());
    hasher.update(body.as_bytes());
    i64::from(hasher.finalize())
}

/// Before the floor of a log goes from `old` to `new`: copies the envelopes of events that have an item which has not ended.
pub(crate) async fn keep_envelopes(tx: &mut WriteTx, tenant_number: i64, old: Seq, new: Seq) -> Result<(), Failure> {
    let rows = log::work_rows(tx.connection(), tenant_number, old, new).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let (mut events, mut agents) = (Vec::new(), Vec::new());
    for row in &rows {
        for agent in row.audience.as_slice() {
            events.push(row.id);
            agents.push(agent.as_str());
        }
    }
    let seqs: Vec<i64> = rows.iter().map(|row| from_seq(row.seq)).collect();
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let sums: Vec<i64> = rows.iter().map(|row| checksum(tenant_number, from_seq(row.seq), row.id, &row.body)).collect();
    let bodies: Vec<&str> = rows.iter().map(|row| row.body.as_str()).collect();
    let query = db::query(sql!("inbox/keep_payloads")).bind(tenant_number).bind(seqs).bind(ids).bind(sums).bind(bodies);
    query.bind(events).bind(agents).execute(tx.connection()).await?;
    Ok(())
}

/// Items have ended: copies that nobody needs any more go.
pub(super) async fn release(tx: &mut WriteTx, number: RecipientNumber, ended: &[&Item]) -> Result<(), Failure> {
    let floor = tx.inboxes().get(number).map(|locked| locked.log_floor);
    let is_old = |item: &&&Item| floor.is_none_or(|floor| item.facts.inbox_seq < floor);
    let seqs: Vec<i64> = ended.iter().filter(is_old).map(|item| from_seq(item.facts.inbox_seq)).collect();
    release_seqs(tx.connection(), tenant_number(number), seqs).await
}

/// The same for the positions of events.
pub(super) async fn release_seqs(connection: &mut Session, tenant_number: i64, seqs: Vec<i64>) -> Result<(), Failure> {
    if !seqs.is_empty() {
        db::query(sql!("inbox/release_payloads")).bind(tenant_number).bind(seqs).execute(connection).await?;
    }
    Ok(())
}

/// Where an event was, and its envelope.
type Copied = ((Seq, EventId), Bytes);

/// `seq, event_id, checksum, body` of a copy that is unharmed.
fn copy(row: &PgRow, tenant_number: i64) -> Result<Option<Copied>, Failure> {
    let (seq, id, body) = (codec::get::<i64>(row, 0)?, codec::uuid(row, 1)?, codec::get::<&str>(row, 3)?);
    let is_sound = codec::get::<i64>(row, 2)? == checksum(tenant_number, seq, id, body);
    if !is_sound {
        tracing::error!(event.seq = seq, "the copy of an envelope does not match its checksum");
        return Ok(None);
    }
    Ok(Some(((codec::seq(row, 0)?, EventId::new(id)), Bytes::copy_from_slice(body.as_bytes()))))
}

/// The envelopes of events: from the log, else from the copies.
pub(super) async fn envelopes(
    connection: &mut Session,
    tenant_number: i64,
    events: &[(Seq, EventId)],
) -> Result<Vec<Option<Bytes>>, Failure> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let mut found: HashMap<(Seq, EventId), Bytes> = log::bodies(&mut *connection, tenant_number, events).await?;
    let missing: Vec<i64> = events.iter().filter(|event| !found.contains_key(event)).map(|(seq, _)| from_seq(*seq)).collect();
    if !missing.is_empty() {
        for row in db::query(sql!("inbox/payloads")).bind(tenant_number).bind(missing).fetch_all(connection).await? {
            found.extend(copy(&row, tenant_number)?);
        }
    }
    Ok(events.iter().map(|event| found.get(event).cloned()).collect())
}
