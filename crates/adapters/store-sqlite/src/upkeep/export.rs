//! Everything that the store holds, as plain values: for a store of another engine.

use async_trait::async_trait;
use domain::{ChannelRef, StoreError};
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, Row as SqlRow, params, params_from_iter};
use transfer::{Bound, Column, Dump, DumpPage, Kind, Row, Table, Value, parse_position, position};

use crate::codec::{self, Position, audience_text};
use crate::failure::Failure;
use crate::inbox;
use crate::log::{self, Interner};
use crate::readers::ReadTx;
use crate::sql::sql;
use crate::store::SqliteStore;

/// A table whose columns are those of the transfer: its statement, and which of the columns are the key by which it goes on.
fn statement(table: Table) -> Option<(&'static str, &'static [usize])> {
    Some(match table {
        Table::Tenants => (sql!("authz/export_tenants"), &[0]),
        Table::Principals => (sql!("authz/export_principals"), &[0, 1]),
        Table::Tokens => (sql!("authz/export_tokens"), &[0, 1]),
        Table::Spaces => (sql!("authz/export_spaces"), &[0, 1]),
        Table::Channels => (sql!("authz/export_channels"), &[0, 1, 2]),
        Table::Grants => (sql!("authz/export_grants"), &[0, 1]),
        Table::AuditLog => (sql!("authz/export_audit_log"), &[1]),
        Table::IdempotencyKeys => (sql!("authz/export_idempotency_keys"), &[0, 1, 2]),
        Table::LogHeads => (sql!("sync/export_log_heads"), &[0]),
        Table::DeduplicationKeys => (sql!("sync/export_deduplication_keys"), &[0, 1]),
        Table::ScheduledEvents => (sql!("intake/export_scheduled_events"), &[0, 1]),
        Table::AgentConsumerCursors => (sql!("agents/export_agent_consumer_cursors"), &[0, 1, 2]),
        Table::InboxRecipients => (sql!("inbox/export_inbox_recipients"), &[1]),
        Table::InboxItems => (sql!("inbox/export_inbox_items"), &[1, 2]),
        Table::InboxEnded => (sql!("inbox/export_inbox_ended"), &[1, 2]),
        Table::InboxKeys => (sql!("inbox/export_inbox_keys"), &[0]),
        Table::InboxClaims => (sql!("inbox/export_inbox_claims"), &[1, 2]),
        Table::AgentSessions => (sql!("inbox/export_agent_sessions"), &[0, 1]),
        Table::Hooks => (sql!("hooks/export_hooks"), &[0]),
        Table::HookKeys => (sql!("hooks/export_hook_keys"), &[1, 2]),
        Table::HookDeliveries => (sql!("hooks/export_hook_deliveries"), &[1, 2]),
        Table::HookAttempts => (sql!("hooks/export_hook_attempts"), &[1, 2]),
        Table::HookPositions => (sql!("hooks/export_hook_positions"), &[0]),
        Table::HookServerKeys => (sql!("hooks/export_hook_server_keys"), &[0]),
        Table::Numbers => (sql!("store/export_numbers"), &[0]),
        _ => return None,
    })
}

#[async_trait]
impl Dump for SqliteStore {
    async fn rows(&self, table: Table, after: Option<&str>, bound: Bound) -> Result<DumpPage, StoreError> {
        let after = after.map(str::to_owned);
        self.read(move |tx| page(tx, table, after.as_deref(), bound)).await
    }
}

fn page(tx: &mut ReadTx, table: Table, after: Option<&str>, bound: Bound) -> Result<DumpPage, Failure> {
    let (connection, interner) = tx.parts();
    match (table, statement(table)) {
        (_, Some((text, key))) => plain(connection, (table, text, key), after, bound),
        (Table::EventLog, None) => at_positions(connection, sql!("sync/export_event_log"), after, bound, |row| event(row, interner)),
        (Table::InboxPayloads, None) => at_positions(connection, sql!("inbox/export_inbox_payloads"), after, bound, payload),
        (other, None) => Err(Failure::corrupt(format!("this release cannot export {}", other.name()))),
    }
}

/// Adds a row, and says whether there is room for more.
fn add(page: &mut DumpPage, bytes: &mut usize, row: Row, bound: Bound) -> bool {
    *bytes += row.iter().map(Value::size).sum::<usize>();
    page.rows.push(row);
    *bytes < bound.bytes
}

fn plain(
    connection: &Connection,
    (table, text, key): (Table, &str, &[usize]),
    after: Option<&str>,
    bound: Bound,
) -> Result<DumpPage, Failure> {
    let columns = table.columns();
    let kinds: Vec<Kind> = key.iter().filter_map(|at| columns.get(*at)).map(|column| column.kind).collect();
    let values = parse_position(after, &kinds)?.into_iter().map(to_sql).chain([SqlValue::Integer(codec::from_count(bound.rows.max(1)))]);
    let mut statement = connection.prepare_cached(text)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let (mut page, mut bytes) = (DumpPage::default(), 0);
    while let Some(row) = rows.next()? {
        let row = columns.iter().enumerate().map(|(at, column)| value(row, at, table, column)).collect::<Result<Row, _>>()?;
        page.end = Some(position(&row, key));
        if !add(&mut page, &mut bytes, row, bound) {
            break;
        }
    }
    Ok(page)
}

fn to_sql(value: Value) -> SqlValue {
    match value {
        Value::Absent => SqlValue::Null,
        Value::Integer(number) => SqlValue::Integer(number),
        Value::Text(text) => SqlValue::Text(text),
        Value::Bytes(bytes) => SqlValue::Blob(bytes),
        // Below every UUID lies the empty one, not the one of zeros.
        Value::Uuid(uuid) if uuid.is_nil() => SqlValue::Blob(Vec::new()),
        Value::Uuid(uuid) => SqlValue::Blob(uuid.as_bytes().to_vec()),
        Value::Flag(flag) => SqlValue::Integer(i64::from(flag)),
    }
}

fn value(row: &SqlRow<'_>, at: usize, table: Table, column: &Column) -> Result<Value, Failure> {
    let stored = row.get_ref(at)?;
    let read = match (column.kind, stored) {
        (_, ValueRef::Null) => Some(Value::Absent),
        (Kind::Integer, ValueRef::Integer(number)) => Some(Value::Integer(number)),
        (Kind::Flag, ValueRef::Integer(number)) => Some(Value::Flag(number != 0)),
        (Kind::Text, ValueRef::Text(_)) => stored.as_str().ok().map(|text| Value::Text(text.to_owned())),
        (Kind::Bytes, ValueRef::Blob(bytes)) => Some(Value::Bytes(bytes.to_vec())),
        (Kind::Uuid, ValueRef::Blob(bytes)) => uuid::Uuid::from_slice(bytes).ok().map(Value::Uuid),
        _ => None,
    };
    read.ok_or_else(|| Failure::corrupt(format!("column {} of a row of {} holds no valid value", column.name, table.name())))
}

/// Tables that are ordered by the position of an event: the first column.
fn at_positions(
    connection: &Connection,
    text: &str,
    after: Option<&str>,
    bound: Bound,
    mut read: impl FnMut(&SqlRow<'_>) -> Result<Row, Failure>,
) -> Result<DumpPage, Failure> {
    let from = match parse_position(after, &[Kind::Integer])?.first() {
        Some(Value::Integer(from)) => *from,
        _ => i64::MIN,
    };
    let mut statement = connection.prepare_cached(text)?;
    let mut rows = statement.query(params![from, codec::from_count(bound.rows.max(1))])?;
    let (mut page, mut bytes) = (DumpPage::default(), 0);
    while let Some(row) = rows.next()? {
        page.end = Some(position(&[Value::Integer(row.get(0)?)], &[0]));
        if !add(&mut page, &mut bytes, read(row)?, bound) {
            break;
        }
    }
    Ok(page)
}

fn place(position: Position) -> [Value; 2] {
    [Value::Integer(position.tenant_number()), Value::Integer(codec::from_seq(position.seq()))]
}

fn text(text: Option<impl Into<String>>) -> Value {
    text.map_or(Value::Absent, |text| Value::Text(text.into()))
}

/// A row of the log, unharmed.
fn event(row: &SqlRow<'_>, interner: &mut Interner) -> Result<Row, Failure> {
    let position = Position::from_raw(row.get(0)?);
    let event = log::read(row, interner, position)?;
    let mut values = Vec::from(place(position));
    values.extend([
        Value::Uuid(event.id.uuid()),
        Value::Text(event.event_type.as_str().to_owned()),
        text(event.channel.as_ref().map(ChannelRef::as_str)),
        text(audience_text(&event.audience)),
        Value::Integer(log::origin_number(event.origin)),
        Value::Integer(event.created_at.as_micros()),
        Value::Text(log::body_text(&event.body)?.to_owned()),
    ]);
    Ok(values)
}

/// A copy of an envelope, unharmed.
fn payload(row: &SqlRow<'_>) -> Result<Row, Failure> {
    let position = Position::from_raw(row.get(0)?);
    if !inbox::payload_is_sound(row)? {
        return Err(Failure::corrupt(format!("the copy of event {} does not match its checksum", position.seq())));
    }
    let mut values = Vec::from(place(position));
    values.extend([
        Value::Uuid(codec::uuid(row, 1)?),
        Value::Text(row.get::<_, Option<String>>(4)?.unwrap_or_default()),
        Value::Text(row.get(3)?),
    ]);
    Ok(values)
}
