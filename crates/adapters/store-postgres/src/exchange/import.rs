//! Filling an empty store with the rows of another one.
//!
//! How far each table has come is noted in the transaction that adds its rows, so an interrupted transfer goes on exactly where it stopped.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use domain::{StoreError, Timestamp};
use sqlx_core::query::Query;
use sqlx_postgres::PgArguments;
use transfer::{Load, Row, Started, Table, Value};
use uuid::Uuid;

use super::statements;
use crate::db::{self, Postgres, Session};
use crate::failure::Failure;
use crate::sql::sql;
use crate::store::PostgresStore;
use crate::tx::WriteTx;
use crate::{inbox, log};

/// The note that a transfer leaves: its source, and this before it once everything is there.
const STATE: &str = "transfer";
const FINISHED: &str = "finished ";
const FILLED_BY_ANOTHER: &str = "somebody else fills the store too";

fn progress(table: Table) -> String {
    format!("{STATE}.{}", table.name())
}

async fn note(connection: &mut Session, name: &str) -> Result<Option<String>, Failure> {
    let row = db::query(sql!("store/transfer_state")).bind(name).fetch_optional(connection).await?;
    row.map(|row| crate::codec::get(&row, 0)).transpose()
}

/// Whether a transfer into this database has begun and not ended.
pub(crate) async fn is_unfinished(connection: &mut Session) -> Result<bool, Failure> {
    Ok(note(connection, STATE).await?.is_some_and(|state| !state.starts_with(FINISHED)))
}

async fn note_first(tx: &mut WriteTx, name: &str, value: &str) -> Result<bool, Failure> {
    let noted = db::query(sql!("store/transfer_note_first")).bind(name).bind(value).execute(tx.connection()).await?;
    Ok(noted.rows_affected() > 0)
}

/// Replaces a note that says `from`.
async fn note_next(tx: &mut WriteTx, name: &str, from: &str, to: &str) -> Result<bool, Failure> {
    let noted = db::query(sql!("store/transfer_note")).bind(name).bind(from).bind(to).execute(tx.connection()).await?;
    Ok(noted.rows_affected() > 0)
}

async fn begin(tx: &mut WriteTx, source: &str) -> Result<Started, Failure> {
    if note_first(tx, STATE, source).await? {
        let used = db::query(sql!("authz/any_tenant")).fetch_optional(tx.connection()).await?.is_some();
        return if used { Err(StoreError::RolledBack.into()) } else { Ok(Started::Empty) };
    }
    let state = note(tx.connection(), STATE).await?.unwrap_or_default();
    Ok(match state.strip_prefix(FINISHED) {
        Some(other) if other == source => Started::Finished,
        None if state == source => Started::Resumed,
        _ => Started::Foreign,
    })
}

async fn finish(tx: &mut WriteTx, source: &str) -> Result<(), Failure> {
    if !note_next(tx, STATE, source, &format!("{FINISHED}{source}")).await? {
        return Err(StoreError::Conflict(FILLED_BY_ANOTHER).into());
    }
    db::query(sql!("store/transfer_forget")).execute(tx.connection()).await?;
    Ok(())
}

/// Some rows, and between which positions of the source they lie.
struct Step {
    table: Table,
    from: Option<String>,
    rows: Vec<Row>,
    end: String,
}

async fn load(tx: &mut WriteTx, step: &Step) -> Result<(), Failure> {
    let name = progress(step.table);
    let is_next = match &step.from {
        None => note_first(tx, &name, &step.end).await?,
        Some(from) => note_next(tx, &name, from, &step.end).await?,
    };
    if !is_next {
        return Err(StoreError::Conflict(FILLED_BY_ANOTHER).into());
    }
    let unknown = || Failure::corrupt(format!("this release cannot load {}", step.table.name()));
    let statements = statements(step.table).ok_or_else(unknown)?;
    let mut query = columns(db::query(statements.load), step)?;
    match step.table {
        Table::EventLog => {
            make_partitions(tx, &step.rows).await?;
            query = query.bind(step.rows.iter().map(event_checksum).collect::<Result<Vec<i64>, _>>()?);
        }
        Table::InboxPayloads => query = query.bind(step.rows.iter().map(payload_checksum).collect::<Result<Vec<i64>, _>>()?),
        _ => {}
    }
    query.execute(tx.connection()).await?;
    Ok(())
}

/// The day of each event has its partition.
async fn make_partitions(tx: &mut WriteTx, rows: &[Row]) -> Result<(), Failure> {
    let created = rows.iter().filter_map(|row| integer(row.get(7)));
    let slots: BTreeSet<i32> = created.map(|at| log::slot_of(Timestamp::from_micros(at))).collect();
    db::query(sql!("sync/make_partition")).bind(slots.into_iter().collect::<Vec<_>>()).execute(tx.connection()).await?;
    Ok(())
}

/// What the row's checksum is before its place is mixed in.
fn event_checksum(row: &Row) -> Result<i64, Failure> {
    let [_, _, Value::Uuid(id), Value::Text(event_type), _, _, Value::Integer(origin), Value::Integer(created_at), Value::Text(body)] =
        row.as_slice()
    else {
        return Err(unexpected());
    };
    let columns = log::Columns {
        id: id.as_bytes(),
        event_type,
        channel: text(row.get(4)),
        audience: text(row.get(5)),
        origin: i16::try_from(*origin).map_err(|_| unexpected())?,
        created_at: *created_at,
        body: body.as_bytes(),
    };
    Ok(i64::from(columns.checksum()))
}

fn payload_checksum(row: &Row) -> Result<i64, Failure> {
    match row.as_slice() {
        [Value::Integer(tenant), Value::Integer(seq), Value::Uuid(id), _, Value::Text(body)] => {
            Ok(inbox::payload_checksum(*tenant, *seq, *id, body))
        }
        _ => Err(unexpected()),
    }
}

fn unexpected() -> Failure {
    Failure::corrupt("a row of a transfer is not of its table")
}

/// Binds an array for each column.
fn columns<'q>(mut query: Query<'q, Postgres, PgArguments>, step: &Step) -> Result<Query<'q, Postgres, PgArguments>, Failure> {
    use transfer::Kind;
    let columns = step.table.columns();
    let fits = |row: &Row| {
        row.len() == columns.len() && row.iter().zip(columns).all(|(value, column)| value.kind().is_none_or(|kind| kind == column.kind))
    };
    if !step.rows.iter().all(fits) {
        return Err(unexpected());
    }
    for (at, column) in columns.iter().enumerate() {
        let values = step.rows.iter().map(|row| row.get(at));
        query = match column.kind {
            Kind::Integer => query.bind(values.map(integer).collect::<Vec<Option<i64>>>()),
            Kind::Text => query.bind(values.map(text).collect::<Vec<Option<&str>>>()),
            Kind::Bytes => query.bind(values.map(bytes).collect::<Vec<Option<&[u8]>>>()),
            Kind::Uuid => query.bind(values.map(uuid).collect::<Vec<Option<Uuid>>>()),
            Kind::Flag => query.bind(values.map(flag).collect::<Vec<Option<bool>>>()),
        };
    }
    Ok(query)
}

fn integer(value: Option<&Value>) -> Option<i64> {
    if let Some(Value::Integer(number)) = value { Some(*number) } else { None }
}

fn text(value: Option<&Value>) -> Option<&str> {
    if let Some(Value::Text(text)) = value { Some(text) } else { None }
}

fn bytes(value: Option<&Value>) -> Option<&[u8]> {
    if let Some(Value::Bytes(bytes)) = value { Some(bytes) } else { None }
}

fn uuid(value: Option<&Value>) -> Option<Uuid> {
    if let Some(Value::Uuid(uuid)) = value { Some(*uuid) } else { None }
}

fn flag(value: Option<&Value>) -> Option<bool> {
    if let Some(Value::Flag(flag)) = value { Some(*flag) } else { None }
}

impl PostgresStore {
    async fn progress(&self, table: Table) -> Result<Option<String>, Failure> {
        let mut connection = self.reader().await?;
        note(&mut connection, &progress(table)).await
    }

    /// What the planner knows of an imported database would else be that it is empty.
    async fn analyze(&self) -> Result<(), Failure> {
        let mut connection = self.reader().await?;
        db::script(sql!("store/analyze")).execute(&mut *connection).await?;
        Ok(())
    }
}

#[async_trait]
impl Load for PostgresStore {
    async fn begin(&self, source: &str) -> Result<Started, StoreError> {
        let source = source.to_owned();
        let begun = self.write("transfer.begin", move |tx| {
            let source = source.clone();
            Box::pin(async move { begin(tx, &source).await })
        });
        match begun.await {
            Err(StoreError::RolledBack) => Ok(Started::Foreign),
            begun => begun,
        }
    }

    async fn loaded(&self, table: Table) -> Result<Option<String>, StoreError> {
        Ok(self.progress(table).await?)
    }

    async fn load(&self, table: Table, from: Option<&str>, rows: &[Row], end: &str) -> Result<(), StoreError> {
        let step = Arc::new(Step { table, from: from.map(str::to_owned), rows: rows.to_vec(), end: end.to_owned() });
        self.write("transfer.load", move |tx| {
            let step = Arc::clone(&step);
            Box::pin(async move { load(tx, &step).await })
        })
        .await
    }

    async fn finish(&self, source: &str) -> Result<(), StoreError> {
        if let Err(failure) = self.analyze().await {
            tracing::warn!(error = %StoreError::from(failure), "the database's statistics were not renewed; that happens by itself later");
        }
        let source = source.to_owned();
        self.write("transfer.finish", move |tx| {
            let source = source.clone();
            Box::pin(async move { finish(tx, &source).await })
        })
        .await
    }
}
