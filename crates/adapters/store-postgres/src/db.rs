//! The driver's few words that the modules here use, so that each statement reads `db::query(sql!("module/name")).bind(…)`.

use sqlx_core::query::Query;
use sqlx_core::query_scalar::QueryScalar;
use sqlx_postgres::PgArguments;

pub(crate) use sqlx_core::executor::Executor;
pub(crate) use sqlx_postgres::{PgRow, Postgres};

pub(crate) use crate::session::Session;

/// A statement of this crate, prepared once per connection.
pub(crate) fn query(text: &'static str) -> Query<'static, Postgres, PgArguments> {
    sqlx_core::query::query(text)
}

/// The same for a statement that answers one column.
pub(crate) fn scalar<T>(text: &'static str) -> QueryScalar<'static, Postgres, T, PgArguments>
where
    (T,): for<'r> sqlx_core::from_row::FromRow<'r, PgRow>,
{
    sqlx_core::query_scalar::query_scalar(text)
}

/// Statements without values, sent as they are: transaction control and migrations.
pub(crate) fn script(text: &'static str) -> sqlx_core::raw_sql::RawSql {
    sqlx_core::raw_sql::raw_sql(text)
}
