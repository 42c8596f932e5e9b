//! Rows of any table as plain values.

use async_trait::async_trait;
use domain::StoreError;
use futures_util::TryStreamExt;
use sqlx_core::query::Query;
use sqlx_postgres::PgArguments;
use transfer::{Bound, Column, Dump, DumpPage, Kind, Row, Table, Value, parse_position, position};

use super::statements;
use crate::codec;
use crate::db::{self, PgRow, Postgres};
use crate::failure::Failure;
use crate::store::PostgresStore;

#[async_trait]
impl Dump for PostgresStore {
    async fn rows(&self, table: Table, after: Option<&str>, bound: Bound) -> Result<DumpPage, StoreError> {
        Ok(self.export(table, after, bound).await?)
    }
}

impl PostgresStore {
    async fn export(&self, table: Table, after: Option<&str>, bound: Bound) -> Result<DumpPage, Failure> {
        let unknown = || Failure::corrupt(format!("this release cannot export {}", table.name()));
        let statements = statements(table).ok_or_else(unknown)?;
        let columns = table.columns();
        let kinds: Vec<Kind> = statements.key.iter().filter_map(|at| columns.get(*at)).map(|column| column.kind).collect();
        let mut query = db::query(statements.export);
        for value in parse_position(after, &kinds)? {
            query = bind(query, value);
        }
        let mut connection = self.reader().await?;
        let mut rows = query.bind(codec::from_count(bound.rows.max(1))).fetch(&mut *connection);
        let (mut page, mut bytes) = (DumpPage::default(), 0);
        while let Some(row) = rows.try_next().await? {
            let row = columns.iter().enumerate().map(|(at, column)| value(&row, at, column)).collect::<Result<Row, _>>()?;
            bytes += row.iter().map(Value::size).sum::<usize>();
            page.end = Some(position(&row, statements.key));
            page.rows.push(row);
            if bytes >= bound.bytes {
                break;
            }
        }
        Ok(page)
    }
}

fn bind(query: Query<'_, Postgres, PgArguments>, value: Value) -> Query<'_, Postgres, PgArguments> {
    match value {
        Value::Absent => query.bind(None::<i64>),
        Value::Integer(number) => query.bind(number),
        Value::Text(text) => query.bind(text),
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Uuid(uuid) => query.bind(uuid),
        Value::Flag(flag) => query.bind(flag),
    }
}

fn value(row: &PgRow, at: usize, column: &Column) -> Result<Value, Failure> {
    let value = match column.kind {
        Kind::Integer => codec::get::<Option<i64>>(row, at)?.map(Value::Integer),
        Kind::Text => codec::get::<Option<String>>(row, at)?.map(Value::Text),
        Kind::Bytes => codec::get::<Option<Vec<u8>>>(row, at)?.map(Value::Bytes),
        Kind::Uuid => codec::optional_uuid(row, at)?.map(Value::Uuid),
        Kind::Flag => codec::get::<Option<bool>>(row, at)?.map(Value::Flag),
    };
    Ok(value.unwrap_or(Value::Absent))
}
