//! Reading every inbox item: whether it can be read, and whether the event that made it is still there.

use domain::{StoreError, TenantId};
use inbox::Item;
use rusqlite::{Connection, Row, params};

use super::check::{CHUNK, CheckReport};
use crate::codec::{self, Position};
use crate::failure::Failure;
use crate::identity::{collect, first};
use crate::inbox::{ended_item, hot_item, payload_is_sound};
use crate::log;
use crate::sql::sql;
use crate::tx::{LogHead, read_head};

/// Checks the inboxes of a tenant, and the envelopes that were copied for them.
pub(super) fn check(connection: &Connection, report: &mut CheckReport, tenant: &TenantId, tenant_number: i64) -> Result<(), Failure> {
    let inboxes = {
        let mut statement = connection.prepare_cached(sql!("inbox/recipients_of"))?;
        collect(statement.query([tenant_number])?, |row| Ok(row.get::<_, i64>(0)?))?
    };
    snapshot(connection, || check_heads(connection, report, tenant))?;
    for number in inboxes {
        let mut reading = Reading { tenant, number, last: Vec::new() };
        while snapshot(connection, || reading.hot(connection, report))? {}
        reading.last.clear();
        while snapshot(connection, || reading.ended(connection, report))? {}
    }
    let mut last = Position::before(tenant_number);
    while snapshot(connection, || check_copies(connection, report, tenant, tenant_number, &mut last))? {}
    Ok(())
}

pub(super) fn snapshot<T>(connection: &Connection, read: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let answer = read();
    connection.prepare_cached("ROLLBACK")?.execute([])?;
    answer
}

/// No inbox has heard of more than its log holds.
fn check_heads(connection: &Connection, report: &mut CheckReport, tenant: &TenantId) -> Result<(), Failure> {
    let Some(log) = read_head(connection, tenant)? else { return Ok(()) };
    let mut statement = connection.prepare_cached(sql!("inbox/recipients_of"))?;
    let mut rows = statement.query([log.number])?;
    while let Some(row) = rows.next()? {
        let head = codec::seq(row, 1)?;
        if head > log.seq {
            report.note(Some(tenant), head, "the head of an inbox lies above its log's");
        }
    }
    Ok(())
}

fn check_copies(
    connection: &Connection,
    report: &mut CheckReport,
    tenant: &TenantId,
    tenant_number: i64,
    last: &mut i64,
) -> Result<bool, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/payloads_after"))?;
    let mut rows = statement.query(params![*last, Position::after(tenant_number)])?;
    for _ in 0..CHUNK {
        let Some(row) = rows.next()? else { return Ok(false) };
        *last = row.get(0)?;
        if !payload_is_sound(row)? {
            report.note(Some(tenant), Position::from_raw(*last).seq(), "the copy of an envelope does not match its checksum");
        }
    }
    Ok(true)
}

/// One inbox on its way through the check.
struct Reading<'a> {
    tenant: &'a TenantId,
    number: i64,
    /// The key of the last item seen.
    last: Vec<u8>,
}

impl Reading<'_> {
    fn hot(&mut self, connection: &Connection, report: &mut CheckReport) -> Result<bool, Failure> {
        let Some(head) = read_head(connection, self.tenant)? else { return Ok(false) };
        self.rows(connection, report, sql!("inbox/items_after"), hot_item, |item| contradiction(connection, &head, item))
    }

    fn ended(&mut self, connection: &Connection, report: &mut CheckReport) -> Result<bool, Failure> {
        self.rows(connection, report, sql!("inbox/ended_after"), ended_item, |_| Ok(None))
    }

    /// Reads some items; `false` at the end of the inbox.
    fn rows(
        &mut self,
        connection: &Connection,
        report: &mut CheckReport,
        statement: &str,
        read: fn(&Row<'_>) -> Result<Item, Failure>,
        contradiction: impl Fn(&Item) -> Result<Option<&'static str>, Failure>,
    ) -> Result<bool, Failure> {
        let mut statement = connection.prepare_cached(statement)?;
        let mut rows = statement.query(params![self.number, self.last])?;
        for _ in 0..CHUNK {
            let Some(row) = rows.next()? else { return Ok(false) };
            self.last = row.get(1)?;
            match read(row) {
                Ok(item) => match contradiction(&item)? {
                    None => report.items += 1,
                    Some(reason) => report.note(Some(self.tenant), item.facts.inbox_seq, reason),
                },
                Err(Failure::Store(StoreError::Corrupt(reason))) => {
                    report.note(Some(self.tenant), codec::seq(row, 2).unwrap_or_default(), reason);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(true)
    }
}

/// What an item says that the log does not.
fn contradiction(connection: &Connection, head: &LogHead, item: &Item) -> Result<Option<&'static str>, Failure> {
    let facts = &item.facts;
    if facts.inbox_seq.max(item.ring_seq) > head.seq {
        return Ok(Some("an inbox item lies above the head of the log"));
    }
    let position = Position::new(head.number, facts.inbox_seq)?;
    if log::body_at(connection, position, facts.event_id)?.is_some() {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(sql!("inbox/payload"))?;
    let copy =
        first(statement.query([position.raw()])?, |row| Ok(row.get_ref(1)?.as_blob().ok() == Some(facts.event_id.uuid().as_bytes())))?;
    Ok(if copy == Some(true) { None } else { Some("the event of an inbox item is gone") })
}
