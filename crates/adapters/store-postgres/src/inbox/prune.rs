//! Removing what is old, and ending what belongs to agents that are gone, in bounded steps. On every node at once: what one is removing, others
//! pass by.

use std::sync::PoisonError;

use domain::Timestamp;
use uuid::Uuid;

use super::payloads;
use crate::codec::{self, from_count};
use crate::db::{self, PgRow};
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

/// Rows that one step looks at for each that it may remove: what was made long ago and ended lately is passed by, not waited for.
const LOOK: usize = 4;
/// Rows of the first portion that is read of an inbox.
const FIRST: usize = 32;

/// How far the walks have come. Ended items have no index by age, which would cost every acknowledge: ids of events are in the order of their
/// making, so what may be old comes first in an inbox, and from the first id that is young the rest of it is skipped. The id decides, not when the
/// item came about: an event that was scheduled has an id from long before.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    /// The ended item that was looked at last.
    ended: (i64, i64, Uuid),
    /// The copy of an envelope that was looked at last.
    copy: (i64, i64),
    /// The open inbox that was looked at last.
    open: (i64, i64),
}

/// Keys of ended items, column by column.
#[derive(Default)]
struct Old {
    tenants: Vec<i64>,
    recipients: Vec<i64>,
    events: Vec<Uuid>,
}

/// Removes at most `limit` of each; `true` when another call would look at more.
pub(super) async fn prune(
    tx: &mut WriteTx,
    ended_before: Timestamp,
    records_before: Timestamp,
    sessions_before: Timestamp,
    limit: usize,
) -> Result<bool, Failure> {
    let limit = limit.max(1);
    let full = |removed: u64| removed >= limit as u64;
    let mut more = false;
    for (statement, before) in [(sql!("inbox/prune_claims"), records_before), (sql!("inbox/prune_sessions"), sessions_before)] {
        let query = db::query(statement).bind(before.as_micros()).bind(from_count(limit));
        more |= full(query.execute(tx.connection()).await?.rows_affected());
    }
    let mut walk = std::mem::take(&mut *tx.shared().inboxes.walk.lock().unwrap_or_else(PoisonError::into_inner));
    let walked = walk.all(tx, ended_before, limit).await;
    *tx.shared().inboxes.walk.lock().unwrap_or_else(PoisonError::into_inner) = walk;
    more |= walked?;
    more |= full(discard(tx, limit).await?);
    let inboxes = db::query(sql!("inbox/remove_closed")).bind(from_count(limit)).execute(tx.connection()).await?;
    Ok(more || full(inboxes.rows_affected()))
}

impl Walk {
    /// Goes on through everything; answers whether something of it is not at its end.
    async fn all(&mut self, tx: &mut WriteTx, ended_before: Timestamp, limit: usize) -> Result<bool, Failure> {
        self.close_orphans(tx, limit).await?;
        let more_ended = self.step(tx, ended_before, limit).await?;
        Ok(self.copies(tx, limit).await? || more_ended)
    }

    /// Closes inboxes whose agent is gone: work that was let in while its agent was being deleted has opened them. One stretch for each call.
    async fn close_orphans(&mut self, tx: &mut WriteTx, limit: usize) -> Result<(), Failure> {
        let most = limit.saturating_mul(LOOK);
        let query = db::query(sql!("union/open_inboxes")).bind(self.open.0).bind(self.open.1).bind(from_count(most));
        let rows = query.fetch_all(tx.connection()).await?;
        let (mut tenants, mut recipients) = (Vec::new(), Vec::new());
        for row in &rows {
            self.open = (codec::get(row, 0)?, codec::get(row, 1)?);
            if !codec::get::<bool>(row, 2)? {
                tenants.push(self.open.0);
                recipients.push(self.open.1);
            }
        }
        if !tenants.is_empty() {
            // Only who holds the head row writes inboxes: nobody's publish is on its way into one that closes.
            db::query(sql!("sync/lock_heads")).bind(&tenants).execute(tx.connection()).await?;
            db::query(sql!("inbox/close_inboxes")).bind(tenants).bind(recipients).execute(tx.connection()).await?;
        }
        // From the beginning, once the end is reached.
        if rows.len() < most {
            self.open = <(i64, i64)>::default();
        }
        Ok(())
    }

    /// Goes on through the ended items; answers whether it is not at their end.
    async fn step(&mut self, tx: &mut WriteTx, before: Timestamp, limit: usize) -> Result<bool, Failure> {
        let (mut removed, mut looked, most) = (0, 0, limit.saturating_mul(LOOK));
        let mut portion = FIRST;
        while removed < limit && looked < most {
            let wanted = portion.min(most - looked);
            let query = db::query(sql!("inbox/ended_from")).bind(self.ended.0).bind(self.ended.1).bind(self.ended.2);
            let rows = query.bind(from_count(wanted)).fetch_all(tx.connection()).await?;
            let (old, seen) = self.read(&rows, before, limit - removed)?;
            looked += seen;
            removed += old.events.len();
            if !old.events.is_empty() {
                let query = db::query(sql!("inbox/remove_ended")).bind(&old.tenants).bind(&old.recipients).bind(&old.events);
                query.execute(tx.connection()).await?;
            }
            if seen == rows.len() && rows.len() < wanted {
                self.ended = <(i64, i64, Uuid)>::default();
                return Ok(false);
            }
            // An inbox of which nothing is old costs one small portion.
            portion = if self.ended.2 == Uuid::max() { FIRST } else { portion.saturating_mul(2) };
        }
        Ok(true)
    }

    /// Goes on until `room` rows are to be removed or the rest of an inbox is young; answers how many were looked at.
    fn read(&mut self, rows: &[PgRow], before: Timestamp, room: usize) -> Result<(Old, usize), Failure> {
        let mut old = Old::default();
        for (index, row) in rows.iter().enumerate() {
            let (tenant, recipient, event): (i64, i64, Uuid) = (codec::get(row, 0)?, codec::get(row, 1)?, codec::uuid(row, 2)?);
            if made_at(event).is_some_and(|made_at| made_at >= before) {
                self.ended = (tenant, recipient, Uuid::max());
                // What of it was read beyond this one is passed by too, as if the scan had ended here.
                let rest =
                    rows.iter().skip(index).take_while(|row| codec::get::<i64>(row, 1).is_ok_and(|other| other == recipient)).count();
                return Ok((old, if index + rest == rows.len() { rows.len() } else { index + 1 }));
            }
            self.ended = (tenant, recipient, event);
            // What only came about lately, as an event that was scheduled long ago, is passed by: it hides nothing.
            if codec::timestamp(row, 3)? < before && codec::timestamp(row, 4)? < before {
                old.tenants.push(tenant);
                old.recipients.push(recipient);
                old.events.push(event);
            }
            if old.events.len() >= room {
                return Ok((old, index + 1));
            }
        }
        Ok((old, rows.len()))
    }

    /// Goes on through the copies of envelopes, and removes those that no item needs any more.
    async fn copies(&mut self, tx: &mut WriteTx, limit: usize) -> Result<bool, Failure> {
        let query = db::query(sql!("inbox/payloads_from")).bind(self.copy.0).bind(self.copy.1).bind(from_count(limit));
        let rows = query.fetch_all(tx.connection()).await?;
        let (mut tenants, mut seqs) = (Vec::new(), Vec::new());
        for row in &rows {
            self.copy = (codec::get(row, 0)?, codec::get(row, 1)?);
            if !codec::get::<bool>(row, 2)? {
                tenants.push(self.copy.0);
                seqs.push(self.copy.1);
            }
        }
        if !seqs.is_empty() {
            db::query(sql!("inbox/remove_payloads")).bind(tenants).bind(seqs).execute(tx.connection()).await?;
        }
        let more = rows.len() >= limit;
        if !more {
            self.copy = <(i64, i64)>::default();
        }
        Ok(more)
    }
}

/// When an event's id was made, as `UUIDv7` say. Its item was made then or later, never before.
fn made_at(event: Uuid) -> Option<Timestamp> {
    let bytes = event.as_bytes();
    let mut millis = [0; 8];
    millis.get_mut(2..)?.copy_from_slice(bytes.get(..6)?);
    (event.get_version_num() == 7).then(|| Timestamp::from_micros(i64::from_be_bytes(millis).saturating_mul(1_000)))
}

/// Discards items of agents that are gone.
async fn discard(tx: &mut WriteTx, limit: usize) -> Result<u64, Failure> {
    let (now, mut discarded) = (tx.now().as_micros(), 0);
    while discarded < limit {
        let closing = db::query(sql!("inbox/closing")).fetch_optional(tx.connection()).await?;
        let Some(row) = closing else { break };
        let (tenant, recipient): (i64, i64) = (codec::get(&row, 0)?, codec::get(&row, 1)?);
        let query = db::query(sql!("inbox/discard_items")).bind(tenant).bind(recipient).bind(from_count(limit - discarded)).bind(now);
        let rows = query.fetch_all(tx.connection()).await?;
        if rows.is_empty() {
            for statement in [sql!("inbox/remove_queues"), sql!("inbox/closed")] {
                db::query(statement).bind(tenant).bind(recipient).execute(tx.connection()).await?;
            }
            continue;
        }
        discarded += rows.len();
        let seqs = rows.iter().map(|row| codec::get(row, 0)).collect::<Result<Vec<i64>, _>>()?;
        payloads::release_seqs(tx.connection(), tenant, seqs).await?;
    }
    Ok(discarded as u64)
}
