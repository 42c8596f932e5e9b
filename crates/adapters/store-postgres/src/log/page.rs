//! Reading rows of the log: verified, in order, without gaps.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use domain::{Audience, Event, EventId, Seq, StoreError, TenantId, Timestamp};
use sqlx_postgres::PgRow;
use sync::{Page, PageRange};

use super::checksum::{Columns, mixed, parse_origin};
use super::intern::Interner;
use crate::failure::Failure;
use crate::session::Session;
use crate::sql::sql;
use crate::tx::LogHead;
use crate::{codec, db};

/// Rows of `range` with the head row, in one statement and so in one snapshot.
pub(crate) async fn page(connection: &mut Session, tenant: &TenantId, range: PageRange) -> Result<Page, Failure> {
    let (max_events, max_bytes) = (range.max_events.max(1), codec::from_count(range.max_bytes));
    let query = db::query(sql!("sync/page")).bind(tenant.as_str()).bind(codec::from_seq(range.after));
    let query = query.bind(range.up_to.map(codec::from_seq)).bind(codec::from_count(max_events)).bind(max_bytes);
    let rows = query.fetch_all(connection).await?;
    let head = LogHead::from_row(rows.first().ok_or(Failure::Store(StoreError::TenantInactive))?)?;
    let last = range.up_to.unwrap_or(head.seq).min(head.seq);
    let mut expected = range.after.next().max(head.floor);
    let mut events = Vec::with_capacity(rows.len());
    let mut bytes = 0;
    let mut rows = rows.iter();
    while expected <= last && events.len() < max_events {
        let Some(row) = rows.next() else {
            // The statement stops by itself only behind rows that fill the page.
            if codec::from_count(bytes) > max_bytes {
                break;
            }
            return Err(missing(expected));
        };
        let event = event(row, FIRST_COLUMN, head.number, expected)?;
        bytes += event.size();
        if bytes > range.max_bytes && !events.is_empty() {
            break;
        }
        events.push(Arc::new(event));
        expected = expected.next();
    }
    Ok(Page { events, head: head.into() })
}

/// Where the columns of an event begin in the rows of a page.
const FIRST_COLUMN: usize = 5;

thread_local! {
    static WORDS: RefCell<Interner> = RefCell::default();
}

/// One row as an event. It must be the row of `expected`, and unharmed.
fn event(row: &PgRow, first: usize, tenant_number: i64, expected: Seq) -> Result<Event, Failure> {
    // Behind a page's last row, and in a page without rows, there is the head row alone.
    if codec::get::<Option<i64>>(row, first)? != Some(codec::from_seq(expected)) {
        return Err(missing(expected));
    }
    let columns = Stored::read(row, first)?;
    columns.verify(tenant_number)?;
    let damaged = || damaged(expected);
    WORDS.with_borrow_mut(|words| {
        let event_type = words.event_type(columns.event_type.as_bytes()).ok_or_else(damaged)?;
        let channel = match columns.channel {
            Some(text) => Some(words.channel(text.as_bytes()).ok_or_else(damaged)?),
            None => None,
        };
        let audience = match columns.audience {
            Some(text) => words.audience(text.as_bytes()).ok_or_else(damaged)?,
            None => Audience::default(),
        };
        let origin = parse_origin(columns.origin).ok_or_else(damaged)?;
        let (created_at, body) = (Timestamp::from_micros(columns.created_at), Bytes::copy_from_slice(columns.body.as_bytes()));
        Ok(Event::new(expected, EventId::new(columns.id), event_type, channel, audience, origin, created_at, body))
    })
}

/// The columns of a row, as they are stored.
struct Stored<'r> {
    seq: Seq,
    id: uuid::Uuid,
    event_type: &'r str,
    channel: Option<&'r str>,
    audience: Option<&'r str>,
    origin: i16,
    created_at: i64,
    body: &'r str,
    checksum: i64,
}

impl<'r> Stored<'r> {
    fn read(row: &'r PgRow, first: usize) -> Result<Self, Failure> {
        Ok(Self {
            seq: codec::seq(row, first)?,
            id: codec::uuid(row, first + 1)?,
            event_type: codec::get(row, first + 2)?,
            channel: codec::get(row, first + 3)?,
            audience: codec::get(row, first + 4)?,
            origin: codec::get(row, first + 5)?,
            created_at: codec::get(row, first + 6)?,
            body: codec::get(row, first + 7)?,
            checksum: codec::get(row, first + 8)?,
        })
    }

    /// Holds a row against its checksum.
    fn verify(&self, tenant_number: i64) -> Result<(), Failure> {
        let columns = Columns {
            id: self.id.as_bytes(),
            event_type: self.event_type,
            channel: self.channel,
            audience: self.audience,
            origin: self.origin,
            created_at: self.created_at,
            body: self.body.as_bytes(),
        };
        if mixed(columns.checksum(), tenant_number, self.seq) == self.checksum { Ok(()) } else { Err(damaged(self.seq)) }
    }
}

fn damaged(seq: Seq) -> Failure {
    Failure::corrupt(format!("event {seq} does not match its checksum"))
}

fn missing(seq: Seq) -> Failure {
    Failure::corrupt(format!("event {seq} is missing"))
}
