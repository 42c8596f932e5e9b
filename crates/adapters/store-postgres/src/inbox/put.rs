//! Writing what became of items.

use std::collections::BTreeMap;

use domain::{StoreError, Timestamp};
use inbox::{AckState, Item, RecipientNumber};
use uuid::Uuid;

use super::{floors, payloads, rows, tenant_number};
use crate::codec::{from_natural, from_seq};
use crate::db::{self, Session};
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

const ABSENT: Failure = Failure::Store(StoreError::Conflict("there is no such item"));

/// Writes the changed items of one or several inboxes.
pub(super) async fn put(tx: &mut WriteTx, items: &[Item]) -> Result<(), Failure> {
    let mut inboxes: BTreeMap<RecipientNumber, (Vec<&Item>, Vec<&Item>)> = BTreeMap::new();
    for item in items {
        let (going_on, ended) = inboxes.entry(item.facts.recipient).or_default();
        if item.state.is_ended() { ended.push(item) } else { going_on.push(item) }
    }
    for (number, (going_on, ended)) in inboxes {
        if !going_on.is_empty() {
            floors::lower(tx, number, &going_on).await?;
            update(tx.connection(), number, &going_on).await?;
            let claimed = going_on.iter().filter(|item| item.state == AckState::Claimed).count();
            tx.inboxes().take(number, claimed as u64);
        }
        if !ended.is_empty() {
            end(tx.connection(), number, &ended).await?;
            payloads::release(tx, number, &ended).await?;
        }
    }
    Ok(())
}

/// What both tables have of an item that changes, one element for each.
struct Columns<'a> {
    ids: Vec<Uuid>,
    states: Vec<i16>,
    dead_letters: Vec<i16>,
    rings: Vec<i64>,
    keys: Vec<i64>,
    deliveries: Vec<i64>,
    counted: Vec<i64>,
    generations: Vec<i64>,
    hashes: Vec<Option<&'a [u8]>>,
    histories: Vec<Option<String>>,
}

impl<'a> Columns<'a> {
    fn of(items: &[&'a Item]) -> Result<Self, Failure> {
        Ok(Self {
            ids: items.iter().map(|item| item.facts.event_id.uuid()).collect(),
            states: items.iter().map(|item| rows::state_number(item.state)).collect(),
            dead_letters: items.iter().map(|item| rows::dead_letter_number(item.dead_letter)).collect(),
            rings: items.iter().map(|item| from_seq(item.ring_seq)).collect(),
            keys: items.iter().map(|item| item.claim_key.as_micros()).collect(),
            deliveries: items.iter().map(|item| i64::from(item.delivery_attempts)).collect(),
            counted: items.iter().map(|item| i64::from(item.counted_attempts)).collect(),
            generations: items.iter().map(|item| from_natural(item.generation.get())).collect(),
            hashes: items.iter().map(|item| item.lease_hash.as_ref().map(|hash| hash.as_bytes().as_slice())).collect(),
            histories: items.iter().map(|item| rows::history_text(&item.history)).collect::<Result<_, _>>()?,
        })
    }
}

async fn update(connection: &mut Session, number: RecipientNumber, items: &[&Item]) -> Result<(), Failure> {
    let columns = Columns::of(items)?;
    let leased = |read: fn(&inbox::Lease) -> i64| -> Vec<Option<i64>> { items.iter().map(|item| item.lease.as_ref().map(read)).collect() };
    let current: Vec<bool> = items.iter().map(|item| item.state.is_current()).collect();
    let session = |item: &&'_ Item| item.lease.as_ref().and_then(|lease| lease.session.as_ref()).map(|session| session.as_str().to_owned());
    let sessions: Vec<Option<String>> = items.iter().map(session).collect();
    let retries: Vec<Option<i64>> = items.iter().map(|item| item.next_retry_at.map(Timestamp::as_micros)).collect();
    let due: Vec<Option<i64>> = items.iter().map(|item| item.due_at().map(Timestamp::as_micros)).collect();
    let query = db::query(sql!("inbox/update_items")).bind(tenant_number(number)).bind(number.get()).bind(&columns.ids);
    let query = query.bind(&columns.states).bind(&columns.dead_letters).bind(&current).bind(&columns.rings).bind(&columns.keys);
    let query =
        query.bind(&columns.deliveries).bind(&columns.counted).bind(&columns.generations).bind(&columns.hashes).bind(&columns.histories);
    let query = query.bind(leased(|lease| lease.until.as_micros())).bind(leased(|lease| lease.attempt_deadline.as_micros()));
    let query = query.bind(leased(|lease| lease.claimed_at.as_micros())).bind(leased(|lease| lease.heartbeat_at.as_micros()));
    let query = query.bind(&sessions).bind(leased(|lease| rows::micros(lease.backoff))).bind(&retries).bind(&due);
    let written = query.execute(connection).await?.rows_affected();
    if written == items.len() as u64 { Ok(()) } else { Err(ABSENT) }
}

/// Moves items out of the hot table.
async fn end(connection: &mut Session, number: RecipientNumber, items: &[&Item]) -> Result<(), Failure> {
    let columns = Columns::of(items)?;
    let ended: Option<Vec<i64>> = items.iter().map(|item| item.ended_at.map(Timestamp::as_micros)).collect();
    let ended = ended.ok_or(Failure::Store(StoreError::Conflict("an item ends without a time")))?;
    let query = db::query(sql!("inbox/end_items")).bind(tenant_number(number)).bind(number.get()).bind(&columns.ids);
    let query = query.bind(&columns.states).bind(&columns.dead_letters).bind(&columns.rings).bind(&columns.keys);
    let query = query.bind(&columns.deliveries).bind(&columns.counted).bind(&columns.generations).bind(&columns.hashes);
    let query = query.bind(&columns.histories).bind(&ended);
    let moved = query.execute(connection).await?.rows_affected();
    if moved == items.len() as u64 { Ok(()) } else { Err(ABSENT) }
}
