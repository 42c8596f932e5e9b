//! The rows of inboxes as a whole.

use std::collections::BTreeSet;

use domain::{PrincipalId, QueueName, StoreError, TenantId};
use inbox::{Recipient, RecipientNumber, RecipientRow};
use rusqlite::{Connection, params};

use super::rows;
use crate::codec;
use crate::failure::Failure;
use crate::identity::{collect, first};
use crate::sql::sql;
use crate::tx::WriteTx;

/// The row of an open inbox.
pub(super) fn find(connection: &Connection, tenant_number: i64, recipient: &Recipient) -> Result<Option<RecipientRow>, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/recipient"))?;
    first(statement.query(params![tenant_number, recipient.agent.as_str()])?, |row| rows::recipient(row, &recipient.tenant))
}

/// The number of an open inbox.
pub(super) fn number(connection: &Connection, tenant_number: i64, agent: &PrincipalId) -> Result<Option<i64>, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/recipient_number"))?;
    first(statement.query(params![tenant_number, agent.as_str()])?, |row| Ok(row.get(0)?))
}

/// The numbers of the inboxes that an agent of that name has, and that earlier agents of that name had.
pub(super) fn numbers_ever(connection: &Connection, tenant_number: i64, agent: &PrincipalId) -> Result<Vec<i64>, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/closed_numbers"))?;
    let mut numbers = collect(statement.query(params![tenant_number, agent.as_str()])?, |row| Ok(row.get(0)?))?;
    numbers.extend(number(connection, tenant_number, agent)?);
    Ok(numbers)
}

/// Makes the row of an inbox that has none.
pub(super) fn create(connection: &Connection, tenant_number: i64, agent: &PrincipalId) -> Result<i64, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/open_recipient"))?;
    Ok(statement.query_row(params![tenant_number, agent.as_str()], |row| row.get(0))?)
}

/// The row of an inbox of a tenant that is served.
pub(super) fn locked(tx: &mut WriteTx, recipient: &Recipient) -> Result<Option<RecipientRow>, Failure> {
    let head = tx.active_head(&recipient.tenant)?;
    find(tx.connection(), head.number, recipient)
}

/// The same; makes it when there is none.
pub(super) fn open(tx: &mut WriteTx, recipient: &Recipient) -> Result<RecipientRow, Failure> {
    let head = tx.active_head(&recipient.tenant)?;
    if number(tx.connection(), head.number, &recipient.agent)?.is_none() {
        create(tx.connection(), head.number, &recipient.agent)?;
    }
    find(tx.connection(), head.number, recipient)?.ok_or_else(|| Failure::corrupt("an inbox that was opened is not there"))
}

/// Writes everything but the identity.
pub(super) fn save(tx: &WriteTx, row: &RecipientRow) -> Result<(), Failure> {
    let (presence, until) = rows::presence_columns(row.presence);
    let values = params![
        row.number.get(),
        codec::from_seq(row.head),
        row.next_due.map(domain::Timestamp::as_micros),
        presence,
        until,
        row.paused,
        queues_text(&row.paused_queues)?,
        row.policy.max_in_flight,
        rows::concurrency_number(row.policy.concurrency),
        row.active_session.as_ref().map(domain::AgentSessionId::as_str),
    ];
    match tx.prepare(sql!("inbox/save_recipient"))?.execute(values)? {
        0 => Err(StoreError::Conflict("there is no such inbox").into()),
        _ => Ok(()),
    }
}

fn queues_text(queues: &BTreeSet<QueueName>) -> Result<Option<String>, Failure> {
    let text = (!queues.is_empty()).then(|| serde_json::to_string(queues)).transpose();
    text.map_err(|_| Failure::corrupt("the paused queues of an inbox cannot be written"))
}

/// The tenant of an inbox.
pub(super) fn tenant_number(connection: &Connection, recipient: RecipientNumber) -> Result<i64, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/tenant_of"))?;
    let found = first(statement.query([recipient.get()])?, |row| Ok(row.get(0)?))?;
    found.ok_or(Failure::Store(StoreError::Conflict("there is no such inbox")))
}

/// Closes the inbox of an agent that goes: nothing finds it any more, and an agent of the same name gets another.
pub(crate) fn close(tx: &mut WriteTx, tenant: &TenantId, agent: &PrincipalId) -> Result<(), Failure> {
    let head = match tx.log_head(tenant) {
        Err(Failure::Store(StoreError::TenantInactive)) => return Ok(()),
        head => head?,
    };
    tx.prepare(sql!("inbox/close_recipient"))?.execute(params![head.number, agent.as_str()])?;
    Ok(())
}
