//! Writing what became of items.

use domain::{Seq, StoreError, Timestamp};
use inbox::{Item, RecipientNumber};
use rusqlite::{CachedStatement, Statement, params};

use super::{payloads, recipients, rows};
use crate::codec;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

const ABSENT: Failure = Failure::Store(StoreError::Conflict("there is no such item"));

/// Writes the changed items of one or several inboxes.
pub(super) fn put(tx: &WriteTx, items: &[Item]) -> Result<(), Failure> {
    if items.iter().any(|item| !item.state.is_ended()) {
        let mut update = tx.prepare(sql!("inbox/update_item"))?;
        items.iter().filter(|item| !item.state.is_ended()).try_for_each(|item| update_item(tx, &mut update, item))?;
    }
    if items.iter().any(|item| item.state.is_ended()) {
        let mut ending = Ending { end: tx.prepare(sql!("inbox/end_item"))?, remove: tx.prepare(sql!("inbox/remove_item"))? };
        let mut copies = Copies::default();
        for item in items.iter().filter(|item| item.state.is_ended()) {
            ending.item(item)?;
            copies.release(tx, item.facts.recipient, item.facts.inbox_seq)?;
        }
    }
    Ok(())
}

/// A current item keeps its place among the rings most of the time, and then their index is not touched.
fn update_item(tx: &WriteTx, update: &mut Statement<'_>, item: &Item) -> Result<(), Failure> {
    if write(update, item)? > 0 {
        return Ok(());
    }
    let key = params![
        item.facts.recipient.get(),
        item.facts.event_id.uuid().into_bytes(),
        codec::from_seq(item.ring_seq),
        item.state.is_current(),
    ];
    tx.prepare(sql!("inbox/update_ring"))?.execute(key)?;
    if write(update, item)? > 0 { Ok(()) } else { Err(ABSENT) }
}

fn write(update: &mut Statement<'_>, item: &Item) -> Result<usize, Failure> {
    let lease = item.lease.as_ref();
    Ok(update.execute(params![
        item.facts.recipient.get(),
        item.facts.event_id.uuid().as_bytes(),
        rows::state_number(item.state),
        rows::dead_letter_number(item.dead_letter),
        item.claim_key.as_micros(),
        item.delivery_attempts,
        item.counted_attempts,
        rows::number(item.generation.get()),
        item.lease_hash.as_ref().map(|hash| hash.as_bytes().as_slice()),
        rows::history_text(&item.history)?,
        lease.map(|lease| lease.until.as_micros()),
        lease.map(|lease| lease.attempt_deadline.as_micros()),
        lease.map(|lease| lease.claimed_at.as_micros()),
        lease.map(|lease| lease.heartbeat_at.as_micros()),
        lease.and_then(|lease| lease.session.as_ref()).map(domain::AgentSessionId::as_str),
        lease.map(|lease| rows::micros(lease.backoff)),
        item.next_retry_at.map(Timestamp::as_micros),
        item.due_at().map(Timestamp::as_micros),
        codec::from_seq(item.ring_seq),
        item.state.is_current(),
    ])?)
}

/// Moves items out of the hot table.
struct Ending<'t> {
    end: CachedStatement<'t>,
    remove: CachedStatement<'t>,
}

impl Ending<'_> {
    fn item(&mut self, item: &Item) -> Result<(), Failure> {
        let ended_at = item.ended_at.ok_or(Failure::Store(StoreError::Conflict("an item ends without a time")))?;
        let (recipient, uuid) = (item.facts.recipient.get(), item.facts.event_id.uuid());
        let moved = self.end.execute(params![
            recipient,
            uuid.as_bytes(),
            rows::state_number(item.state),
            rows::dead_letter_number(item.dead_letter),
            item.claim_key.as_micros(),
            item.delivery_attempts,
            item.counted_attempts,
            rows::number(item.generation.get()),
            item.lease_hash.as_ref().map(|hash| hash.as_bytes().as_slice()),
            rows::history_text(&item.history)?,
            codec::from_seq(item.ring_seq),
            ended_at.as_micros(),
        ])?;
        if moved == 0 {
            return Err(ABSENT);
        }
        self.remove.execute(params![recipient, uuid.as_bytes()])?;
        Ok(())
    }
}

/// The logs of the inboxes that were seen last: whose floor an event has passed may have a copy of its envelope.
#[derive(Default)]
pub(super) struct Copies(Option<(RecipientNumber, i64, Seq)>);

impl Copies {
    /// Notes that an item has ended: one fewer needs the copy of its envelope.
    pub(super) fn release(&mut self, tx: &WriteTx, recipient: RecipientNumber, seq: Seq) -> Result<(), Failure> {
        let (tenant_number, floor) = match self.0 {
            Some((seen, tenant_number, floor)) if seen == recipient => (tenant_number, floor),
            _ => {
                let tenant_number = recipients::tenant_number(tx.connection(), recipient)?;
                let floor = payloads::floor(tx.connection(), tenant_number)?;
                self.0 = Some((recipient, tenant_number, floor));
                (tenant_number, floor)
            }
        };
        if seq < floor { payloads::release(tx.connection(), tenant_number, seq) } else { Ok(()) }
    }
}
