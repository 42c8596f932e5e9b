//! Reading rows of the log: verified, in order, without gaps.

use std::sync::Arc;

use bytes::Bytes;
use domain::{Event, EventId, Seq, StoreError, TenantId, Timestamp};
use rusqlite::{Connection, Row, params};
use sync::{Page, PageRange};
use uuid::Uuid;

use super::checksum::{Columns, parse_origin};
use super::intern::Interner;
use crate::codec::Position;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::read_head;

/// Rows of `range` with the head row, both in the caller's snapshot.
pub(crate) fn page(connection: &Connection, interner: &mut Interner, tenant: &TenantId, range: PageRange) -> Result<Page, Failure> {
    let head = read_head(connection, tenant)?.ok_or(Failure::Store(StoreError::TenantInactive))?;
    let last = range.up_to.unwrap_or(head.seq).min(head.seq);
    let first = range.after.next().max(head.floor);
    let mut events = Vec::new();
    if first <= last {
        let wanted = usize::try_from(last.since(first).saturating_add(1)).unwrap_or(usize::MAX);
        events.reserve(range.max_events.max(1).min(wanted).min(4096));
        let bound = Bound { max_events: range.max_events.max(1), max_bytes: range.max_bytes };
        read_rows(connection, interner, (head.number, first, last), bound, &mut events)?;
    }
    Ok(Page { events, head: head.into() })
}

struct Bound {
    max_events: usize,
    max_bytes: usize,
}

fn read_rows(
    connection: &Connection,
    interner: &mut Interner,
    (tenant_number, first, last): (i64, Seq, Seq),
    bound: Bound,
    events: &mut Vec<Arc<Event>>,
) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(sql!("sync/page"))?;
    let from = Position::new(tenant_number, first.previous())?.raw();
    let mut rows = statement.query(params![from, Position::new(tenant_number, last)?.raw()])?;
    let mut expected = first;
    let mut bytes = 0;
    while expected <= last && events.len() < bound.max_events {
        let Some(row) = rows.next()? else { return Err(missing(expected)) };
        let event = read(row, interner, Position::new(tenant_number, expected)?)?;
        bytes += event.size();
        if bytes > bound.max_bytes && !events.is_empty() {
            break;
        }
        events.push(Arc::new(event));
        expected = expected.next();
    }
    Ok(())
}

/// One row as an event. It must be the row of `expected`, and unharmed.
pub(crate) fn read(row: &Row<'_>, interner: &mut Interner, expected: Position) -> Result<Event, Failure> {
    let columns = columns(row)?;
    if columns.position != expected.raw() {
        return Err(missing(expected.seq()));
    }
    verify(row, &columns)?;
    let damaged = || damaged(expected.seq());
    let id = Uuid::from_slice(columns.id).map_err(|_| damaged())?;
    let event_type = interner.event_type(columns.event_type).ok_or_else(damaged)?;
    let channel = match columns.channel {
        Some(text) => Some(interner.channel(text).ok_or_else(damaged)?),
        None => None,
    };
    let audience = match columns.audience {
        Some(text) => interner.audience(text).ok_or_else(damaged)?,
        None => domain::Audience::default(),
    };
    let origin = parse_origin(columns.origin).ok_or_else(damaged)?;
    let created_at = Timestamp::from_micros(columns.created_at);
    let body = Bytes::copy_from_slice(columns.body);
    Ok(Event::new(expected.seq(), EventId::new(id), event_type, channel, audience, origin, created_at, body))
}

/// Whether the row at `position` is there and unharmed.
pub(crate) fn row_is_sound(connection: &Connection, position: Position) -> Result<bool, Failure> {
    let mut statement = connection.prepare_cached(sql!("sync/page"))?;
    let mut rows = statement.query(params![position.raw() - 1, position.raw()])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    Ok(verify(row, &columns(row)?).is_ok())
}

fn columns<'a>(row: &'a Row<'_>) -> Result<Columns<'a>, Failure> {
    let unreadable = |_| Failure::corrupt("a row of the log holds a value of another type");
    Ok(Columns {
        position: row.get_ref(0)?.as_i64().map_err(unreadable)?,
        id: row.get_ref(1)?.as_blob().map_err(unreadable)?,
        event_type: row.get_ref(2)?.as_bytes().map_err(unreadable)?,
        channel: row.get_ref(3)?.as_bytes_or_null().map_err(unreadable)?,
        audience: row.get_ref(4)?.as_bytes_or_null().map_err(unreadable)?,
        origin: row.get_ref(5)?.as_i64().map_err(unreadable)?,
        created_at: row.get_ref(6)?.as_i64().map_err(unreadable)?,
        body: row.get_ref(7)?.as_bytes().map_err(unreadable)?,
    })
}

/// Holds a row against its checksum.
fn verify(row: &Row<'_>, columns: &Columns<'_>) -> Result<(), Failure> {
    let stored = row.get_ref(8)?.as_i64().ok();
    if stored == Some(i64::from(columns.checksum())) { Ok(()) } else { Err(damaged(Position::from_raw(columns.position).seq())) }
}

fn damaged(seq: Seq) -> Failure {
    Failure::corrupt(format!("event {seq} does not match its checksum"))
}

fn missing(seq: Seq) -> Failure {
    Failure::corrupt(format!("event {seq} is missing"))
}
