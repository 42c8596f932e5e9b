//! The floor under publishing to PostgreSQL: one writer who sends rows of a payload in groups, each group one durable statement.

use std::str::FromStr;
use std::time::{Duration, Instant};

use sqlx_core::connection::{ConnectOptions, Connection as _};
use sqlx_core::executor::Executor as _;
use sqlx_postgres::{PgConnectOptions, PgConnection};

use crate::failure::Failure;

/// A table that only grows, in a database of its own.
const TABLE: &str = "CREATE TABLE floor (position BIGINT NOT NULL PRIMARY KEY, body TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO floor (position, body) SELECT * FROM unnest($1::BIGINT[], $2::TEXT[])";

/// One writer.
#[derive(Debug)]
pub(crate) struct SharedAppendFloor {
    connection: PgConnection,
    next: i64,
    body: String,
}

impl SharedAppendFloor {
    /// In the empty database at `url`, for rows of `bytes`.
    pub(crate) async fn open(url: &str, bytes: usize) -> Result<Self, Failure> {
        let options = PgConnectOptions::from_str(url).map_err(failed)?.disable_statement_logging();
        let mut connection = PgConnection::connect_with(&options).await.map_err(failed)?;
        connection.execute(TABLE).await.map_err(failed)?;
        Ok(Self { connection, next: 1, body: "x".repeat(bytes) })
    }

    /// Rows per second that are durable, `group` of them in each transaction.
    pub(crate) async fn rate(&mut self, group: usize, window: Duration) -> Result<f64, Failure> {
        let begin = Instant::now();
        let first = self.next;
        let bodies = vec![self.body.as_str(); group];
        while begin.elapsed() < window {
            let end = self.next + i64::try_from(group).unwrap_or(i64::MAX);
            let positions: Vec<i64> = (self.next..end).collect();
            let insert = sqlx_core::query::query(INSERT).bind(positions).bind(&bodies);
            insert.execute(&mut self.connection).await.map_err(failed)?;
            self.next = end;
        }
        Ok((self.next - first) as f64 / begin.elapsed().as_secs_f64())
    }
}

fn failed(error: sqlx_core::Error) -> Failure {
    Failure::Wrong(format!("the floor over PostgreSQL: {error}"))
}
