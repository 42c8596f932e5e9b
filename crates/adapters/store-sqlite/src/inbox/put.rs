//! Writing what became of items.

use domain::{Seq, StoreError, Timestamp};
use inbox::{Item, RecipientNumber};
use rusqlite::params;

use super::{payloads, recipients, rows};
use crate::codec;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

const ABSENT: Failure = Failure::Store(StoreError::Conflict("there is no such item"));

/// Writes the changed items of one or several inboxes.
pub(super) fn put(tx: &WriteTx, items: &[Item]) -> Result<(), Failure> {
    let mut copies = Copies::default();
    for item in items {
        if item.state.is_ended() {
            end(tx, item)?;
            copies.release(tx, item.facts.recipient, item.facts.inbox_seq)?;
        } else {
            update(tx, item)?;
        }
    }
    Ok(())
}

/// A current item keeps its place among the rings most of the time, and then their index is not touched.
fn update(tx: &WriteTx, item: &Item) -> Result<(), Failure> {
    if write(tx, item)? > 0 {
        return Ok(());
    }
    let key = params![
        item.facts.recipient.get(),
        item.facts.event_id.uuid().into_bytes(),
        codec::from_seq(item.ring_seq),
        item.state.is_current(),
    ];
    tx.prepare(sql!("inbox/update_ring"))?.execute(key)?;
    if write(tx, item)? > 0 { Ok(()) } else { Err(ABSENT) }
}

fn write(tx: &WriteTx, item: &Item) -> Result<usize, Failure> {
    let lease = item.lease.as_ref();
    let values = params![
        item.facts.recipient.get(),
        item.facts.event_id.uuid().into_bytes(),
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
    ];
    Ok(tx.prepare(sql!("inbox/update_item"))?.execute(values)?)
}

/// Moves an item out of the hot table.
fn end(tx: &WriteTx, item: &Item) -> Result<(), Failure> {
    let ended_at = item.ended_at.ok_or(Failure::Store(StoreError::Conflict("an item ends without a time")))?;
    let (recipient, event) = (item.facts.recipient.get(), item.facts.event_id.uuid().into_bytes());
    let values = params![
        recipient,
        event,
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
    ];
    if tx.prepare(sql!("inbox/end_item"))?.execute(values)? == 0 {
        return Err(ABSENT);
    }
    tx.prepare(sql!("inbox/remove_item"))?.execute(params![recipient, event])?;
    Ok(())
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
