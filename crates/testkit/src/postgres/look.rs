//! What tests ask of a database or have it do, past every store.

use std::time::Duration;

use sqlx_core::connection::Connection as _;
use sqlx_core::sql_str::AssertSqlSafe;

use super::TestDatabase;

impl TestDatabase {
    /// The one number that this statement answers.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn number(&self, statement: &str) -> i64 {
        let mut connection = self.connection().await;
        let answer = sqlx_core::query_scalar::query_scalar(AssertSqlSafe(statement.to_owned())).fetch_one(&mut connection).await;
        let _ = connection.close().await;
        answer.unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// Waits until the one number that this statement answers is `wanted`.
    ///
    /// # Panics
    /// When the server refuses, or it never is.
    pub async fn wait_for(&self, statement: &str, wanted: i64) {
        let mut found = self.number(statement).await;
        for _ in 0..500 {
            if found == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            found = self.number(statement).await;
        }
        panic!("{statement}: {found} instead of {wanted}");
    }

    /// Has the server do this.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn run(&self, statement: &str) {
        let mut connection = self.connection().await;
        if let Err(error) = sqlx_core::raw_sql::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await {
            panic!("{statement}: {error}");
        }
        let _ = connection.close().await;
    }
}
