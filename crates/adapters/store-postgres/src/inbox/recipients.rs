//! The rows of inboxes as a whole. Only who holds the tenant's head row writes one, so that a publisher, which holds it, never waits for a row.

use domain::{PrincipalId, StoreError, TenantId, Timestamp};
use inbox::{Recipient, RecipientNumber, RecipientRow};

use super::held::{Locked, Mode};
use super::{rows, tenant_number};
use crate::codec::{self, from_seq};
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

const ABSENT: Failure = Failure::Store(StoreError::Conflict("there is no such inbox"));
const ACTIVE: &str = "active";

/// Locks an inbox of a tenant that is served; `None` when there is none. Shared is a wish: see the function of the schema.
pub(super) async fn lock(tx: &mut WriteTx, recipient: &Recipient, mode: Mode) -> Result<Option<RecipientRow>, Failure> {
    let now = tx.now();
    let query = db::query(sql!("inbox/lock")).bind(recipient.tenant.as_str()).bind(recipient.agent.as_str());
    let query = query.bind(now.as_micros()).bind(mode == Mode::Exclusive);
    let row = query.fetch_optional(tx.connection()).await?.ok_or(Failure::Store(StoreError::TenantInactive))?;
    if codec::get::<&str>(&row, 12)? != ACTIVE {
        return Err(StoreError::TenantInactive.into());
    }
    let Some(locked) = Locked::from_row(&row, &recipient.tenant)? else { return Ok(None) };
    let found = locked.row.clone();
    tx.inboxes().insert(locked);
    Ok(Some(found))
}

/// The same; makes it when there is none.
pub(super) async fn open(tx: &mut WriteTx, recipient: &Recipient) -> Result<RecipientRow, Failure> {
    if let Some(row) = lock(tx, recipient, Mode::Exclusive).await? {
        return Ok(row);
    }
    let head = tx.lock_head(&recipient.tenant).await?;
    if !head.is_active() {
        return Err(StoreError::TenantInactive.into());
    }
    let made = db::query(sql!("inbox/open_recipient")).bind(head.number).bind(recipient.agent.as_str());
    if made.fetch_optional(tx.connection()).await?.is_none() {
        // Somebody was faster. To wait for that inbox with the head row in hand would be the wrong way round.
        return Err(StoreError::Transient.into());
    }
    lock(tx, recipient, Mode::Exclusive).await?.ok_or_else(|| Failure::corrupt("an inbox that was opened is not there"))
}

/// Writes everything but the identity.
pub(super) async fn save(tx: &mut WriteTx, row: &RecipientRow) -> Result<(), Failure> {
    if tx.inboxes().get(row.number).is_none() {
        lock(tx, &row.recipient, Mode::Exclusive).await?;
    }
    let Some((mode, found)) = tx.inboxes().get(row.number).map(|locked| (locked.mode, locked.row.clone())) else { return Err(ABSENT) };
    tx.lock_head(&row.recipient.tenant).await?;
    match mode {
        Mode::Exclusive => write(tx, row, &found).await?,
        Mode::Shared => note(tx, row, &found).await?,
    }
    if let Some(locked) = tx.inboxes().get_mut(row.number) {
        locked.row = RecipientRow { head: row.head.max(found.head), ..row.clone() };
    }
    Ok(())
}

async fn write(tx: &mut WriteTx, row: &RecipientRow, found: &RecipientRow) -> Result<(), Failure> {
    let (presence, until) = rows::presence_columns(row.presence);
    let query = db::query(sql!("inbox/save_recipient")).bind(tenant_number(row.number)).bind(row.number.get());
    let query = query.bind(from_seq(row.head)).bind(from_seq(found.head)).bind(row.next_due.map(Timestamp::as_micros));
    let query = query.bind(presence).bind(until).bind(row.paused).bind(rows::queues_text(&row.paused_queues)?);
    let query = query.bind(row.policy.max_in_flight.map(i64::from)).bind(rows::concurrency_number(row.policy.concurrency));
    let query = query.bind(row.active_session.as_ref().map(domain::AgentSessionId::as_str));
    match query.execute(tx.connection()).await?.rows_affected() {
        0 => Err(ABSENT),
        _ => Ok(()),
    }
}

/// Those who share an inbox raise its head and bring its due time forward. They do not defer it: what others are about to write is not seen.
async fn note(tx: &mut WriteTx, row: &RecipientRow, found: &RecipientRow) -> Result<(), Failure> {
    let wanted = RecipientRow { head: row.head, next_due: row.next_due, ..found.clone() };
    if wanted != *row {
        return Err(StoreError::Conflict("an inbox that is shared is changed as a whole").into());
    }
    let query = db::query(sql!("inbox/note_change")).bind(tenant_number(row.number)).bind(row.number.get());
    let query = query.bind(from_seq(row.head)).bind(row.next_due.map(Timestamp::as_micros));
    match query.execute(tx.connection()).await?.rows_affected() {
        0 => Err(ABSENT),
        _ => Ok(()),
    }
}

/// Closes the inbox of an agent that goes: nothing finds it any more, and an agent of the same name gets another.
pub(crate) async fn close(tx: &mut WriteTx, tenant: &TenantId, agent: &PrincipalId) -> Result<(), Failure> {
    let head = match tx.log_head(tenant).await {
        Err(Failure::Store(StoreError::TenantInactive)) => return Ok(()),
        head => head?,
    };
    let number = db::scalar::<i64>(sql!("inbox/recipient_number")).bind(head.number).bind(agent.as_str());
    let Some(number) = number.fetch_optional(tx.connection()).await? else { return Ok(()) };
    lock_number(tx, RecipientNumber::new(number)).await?;
    tx.lock_head(tenant).await?;
    db::query(sql!("inbox/close_recipient")).bind(head.number).bind(number).execute(tx.connection()).await?;
    Ok(())
}

/// Waits until nobody else works on an inbox.
pub(super) async fn lock_number(tx: &mut WriteTx, number: RecipientNumber) -> Result<(), Failure> {
    db::query(sql!("inbox/lock_inbox")).bind(number.get()).execute(tx.connection()).await?;
    Ok(())
}
