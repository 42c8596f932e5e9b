//! Copies of envelopes whose log row goes before their items do, and what else asks which items an event still has.

use std::collections::HashMap;

use bytes::Bytes;
use domain::{Audience, EventId, PrincipalId, Seq, StoreError, TenantId};
use rusqlite::{Connection, Row, params};

use super::recipients;
use crate::codec::{self, Position, audience_text, parse_audience};
use crate::failure::Failure;
use crate::identity::first;
use crate::log::{self, WorkRow};
use crate::readers::ReadTx;
use crate::sql::sql;
use crate::tx::{WriteTx, read_head};

/// CRC-32 over position, id and body.
fn checksum(position: i64, id: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&position.to_le_bytes());
    hasher.update(id);
    hasher.update(body);
    hasher.finalize()
}

/// The lowest retained position of a log.
pub(super) fn floor(connection: &Connection, tenant_number: i64) -> Result<Seq, Failure> {
    let mut statement = connection.prepare_cached(sql!("sync/floor"))?;
    let floor = first(statement.query([tenant_number])?, |row| codec::seq(row, 0))?;
    floor.ok_or(Failure::Store(StoreError::TenantInactive))
}

/// Before the floor of a log goes from `old` to `new`: copies the envelopes of events that have an item which has not ended.
pub(crate) fn keep_envelopes(tx: &WriteTx, tenant_number: i64, old: Seq, new: Seq) -> Result<(), Failure> {
    let mut inboxes: HashMap<PrincipalId, Vec<i64>> = HashMap::new();
    let range = (Position::new(tenant_number, old)?, Position::new(tenant_number, new)?);
    log::work_rows(tx.connection(), range, |row| {
        let mut needed_by = 0;
        for principal in row.audience.as_slice() {
            if !inboxes.contains_key(principal) {
                inboxes.insert(principal.clone(), recipients::numbers_ever(tx.connection(), tenant_number, principal)?);
            }
            for number in inboxes.get(principal).into_iter().flatten() {
                needed_by += i64::from(hot_item(tx.connection(), *number, row.id)?.is_some());
            }
        }
        if needed_by > 0 { keep(tx.connection(), row, needed_by) } else { Ok(()) }
    })
}

fn keep(connection: &Connection, row: &WorkRow<'_>, needed_by: i64) -> Result<(), Failure> {
    let (position, body) = (row.position.raw(), row.body);
    let text = log::body_text(body)?;
    connection.prepare_cached(sql!("inbox/keep_payload"))?.execute(params![
        position,
        row.id,
        audience_text(&row.audience),
        needed_by,
        checksum(position, row.id, body),
        text,
    ])?;
    Ok(())
}

/// Whether an inbox has an item of the event that has not ended, and then whether it is current.
fn hot_item(connection: &Connection, recipient: i64, event: &[u8]) -> Result<Option<bool>, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/has_item"))?;
    first(statement.query(params![recipient, event])?, |row| Ok(row.get(0)?))
}

/// One item fewer needs the copy of the envelope at `seq`; it goes with the last one.
pub(super) fn release(connection: &Connection, tenant_number: i64, seq: Seq) -> Result<(), Failure> {
    let position = Position::new(tenant_number, seq)?.raw();
    if connection.prepare_cached(sql!("inbox/release_payload"))?.execute([position])? > 0 {
        connection.prepare_cached(sql!("inbox/remove_payload"))?.execute([position])?;
    }
    Ok(())
}

/// `position, event_id, checksum, body` of a copy that is unharmed and of that event.
fn body(row: &Row<'_>, event: EventId) -> Result<Option<Bytes>, Failure> {
    Ok(if payload_is_sound(row)? && row.get_ref(1)?.as_blob().ok() == Some(event.uuid().as_bytes()) {
        row.get_ref(3)?.as_bytes().ok().map(Bytes::copy_from_slice)
    } else {
        None
    })
}

/// Holds a copy against its checksum: `position, event_id, checksum, body`.
pub(crate) fn payload_is_sound(row: &Row<'_>) -> Result<bool, Failure> {
    let (Ok(position), Ok(id)) = (row.get_ref(0)?.as_i64(), row.get_ref(1)?.as_blob()) else { return Ok(false) };
    let (Ok(stored), Ok(body)) = (row.get_ref(2)?.as_i64(), row.get_ref(3)?.as_bytes()) else { return Ok(false) };
    Ok(stored == i64::from(checksum(position, id, body)))
}

/// The envelopes of events: from the log, else from the copies.
pub(super) fn envelopes(tx: &ReadTx, tenant: &TenantId, events: &[(Seq, EventId)]) -> Result<Vec<Option<Bytes>>, Failure> {
    let head = read_head(tx.connection(), tenant)?.ok_or(Failure::Store(StoreError::TenantInactive))?;
    let mut copies = tx.prepare(sql!("inbox/payload"))?;
    let mut envelopes = Vec::with_capacity(events.len());
    for (seq, event) in events {
        let Ok(position) = Position::new(head.number, *seq) else {
            envelopes.push(None);
            continue;
        };
        envelopes.push(match log::body_at(tx.connection(), position, *event)? {
            Some(body) => Some(body),
            None => first(copies.query([position.raw()])?, |row| body(row, *event))?.flatten(),
        });
    }
    Ok(envelopes)
}

/// Whether any item of an event is current: its deduplication key stands as long. `seq` is the event's.
pub(crate) fn work_is_current(connection: &Connection, tenant_number: i64, seq: Seq, event: EventId) -> Result<bool, Failure> {
    let Some(audience) = audience(connection, Position::new(tenant_number, seq)?, event)? else { return Ok(false) };
    for agent in audience.as_slice() {
        let Some(number) = recipients::number(connection, tenant_number, agent)? else { continue };
        if hot_item(connection, number, event.uuid().as_bytes())? == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Who may have an item of an event.
fn audience(connection: &Connection, position: Position, event: EventId) -> Result<Option<Audience>, Failure> {
    if let Some(audience) = log::work_audience(connection, position, event)? {
        return Ok(Some(audience));
    }
    let mut statement = connection.prepare_cached(sql!("inbox/payload_audience"))?;
    let copied = first(statement.query([position.raw()])?, |row| {
        let same = row.get_ref(0)?.as_blob().ok() == Some(event.uuid().as_bytes());
        Ok(row.get_ref(1)?.as_str().ok().filter(|_| same).and_then(parse_audience))
    })?;
    Ok(copied.flatten())
}
