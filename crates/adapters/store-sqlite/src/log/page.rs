//! Reading rows of the log: verified, in order, without gaps.

use std::sync::Arc;

use bytes::Bytes;
use domain::{Audience, Event, EventId, EventOrigin, Seq, StoreError, TenantId, Timestamp};
use rusqlite::{Connection, Row, params};
use sync::{Page, PageRange};
use uuid::Uuid;

use super::checksum::{Columns, parse_origin};
use super::intern::Interner;
use crate::codec::{Position, parse_audience};
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

/// A row that left inbox items, as retention looks at it.
pub(crate) struct WorkRow<'a> {
    pub(crate) position: Position,
    pub(crate) id: &'a [u8],
    pub(crate) audience: Audience,
    pub(crate) body: &'a [u8],
}

/// Calls `visit` with each row from `from` up to but not at `to` that left inbox items. Damaged ones are passed by: there is nothing in them to keep.
pub(crate) fn work_rows(
    connection: &Connection,
    (from, to): (Position, Position),
    mut visit: impl FnMut(&WorkRow<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(sql!("sync/work_rows"))?;
    let mut rows = statement.query(params![from.raw(), to.raw()])?;
    while let Some(row) = rows.next()? {
        let columns = columns(row)?;
        let audience = columns.audience.and_then(|text| parse_audience(std::str::from_utf8(text).ok()?));
        let (Ok(()), Some(audience)) = (verify(row, &columns), audience) else {
            tracing::error!(
                event.seq = Position::from_raw(columns.position).seq().get(),
                "a damaged event goes, and items of it stay without it"
            );
            continue;
        };
        visit(&WorkRow { position: Position::from_raw(columns.position), id: columns.id, audience, body: columns.body })?;
    }
    Ok(())
}

/// The envelope of `event`, if its row is at `position` and unharmed.
pub(crate) fn body_at(connection: &Connection, position: Position, event: EventId) -> Result<Option<Bytes>, Failure> {
    row_of(connection, position, event, |columns| Some(Bytes::copy_from_slice(columns.body)))
}

/// To whom `event` is addressed, if its row is at `position` and unharmed, and it left inbox items.
pub(crate) fn work_audience(connection: &Connection, position: Position, event: EventId) -> Result<Option<Audience>, Failure> {
    row_of(connection, position, event, |columns| {
        let is_work = parse_origin(columns.origin) == Some(EventOrigin::Work);
        columns.audience.filter(|_| is_work).and_then(|text| parse_audience(std::str::from_utf8(text).ok()?))
    })
}

/// Reads the row at `position` if it is that of `event` and unharmed.
fn row_of<T>(
    connection: &Connection,
    position: Position,
    event: EventId,
    read: impl FnOnce(&Columns<'_>) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let mut statement = connection.prepare_cached(sql!("sync/page"))?;
    let mut rows = statement.query(params![position.raw() - 1, position.raw()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let columns = columns(row)?;
    Ok(if columns.id == event.uuid().as_bytes() && verify(row, &columns).is_ok() { read(&columns) } else { None })
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
