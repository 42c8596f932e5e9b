//! The conformance suite over this store: what every store must do is said in `testkit::conformance`.

use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use domain::{Clock, SystemClock};
use doorstep_store_postgres::{PostgresOptions, PostgresStore, schema};
use sqlx_core::connection::ConnectOptions;
use sqlx_core::executor::Executor;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_postgres::{PgConnectOptions, PgConnection};
use sync::CommitListener;
use testkit::conformance::{Harness, Ports, Subject};
use testkit::postgres::{Cluster, TestDatabase};
use uuid::Uuid;

/// The name of the template that has this release's schema: a cluster may outlive a change of a migration.
fn template() -> String {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../migrations/postgres");
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let texts: Vec<u8> = paths.iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
    format!("schema_{:08x}", crc32fast::hash(&texts))
}

/// A store in a database of its own.
pub(crate) struct Postgres;

#[async_trait]
impl Harness for Postgres {
    async fn open(&self, clock: Arc<dyn Clock>) -> Box<dyn Subject> {
        Box::new(Opened::in_new_database(clock).await)
    }

    fn cases(&self, usual: u32) -> u32 {
        usual / 4
    }
}

pub(crate) struct Opened {
    pub(crate) database: Arc<TestDatabase>,
    pub(crate) store: Arc<PostgresStore>,
    clock: Arc<dyn Clock>,
}

impl Opened {
    pub(crate) async fn in_new_database(clock: Arc<dyn Clock>) -> Self {
        Self::in_database_of(Cluster::shared(), clock).await
    }

    pub(crate) async fn in_database_of(cluster: &Cluster, clock: Arc<dyn Clock>) -> Self {
        let migrate = async |url: &str| drop(schema::up(&PostgresOptions::new(url), &SystemClock::new()).await.unwrap());
        let database = cluster.database(&template(), migrate).await;
        Self::over(Arc::new(database), clock).await
    }

    /// Another node of the same database, or the same one after a restart.
    pub(crate) async fn over(database: Arc<TestDatabase>, clock: Arc<dyn Clock>) -> Self {
        let options = PostgresOptions { connections: 8, append_connections: 2, ..PostgresOptions::new(&database.url) };
        Self::set_up(database, options, clock).await
    }

    pub(crate) async fn set_up(database: Arc<TestDatabase>, options: PostgresOptions, clock: Arc<dyn Clock>) -> Self {
        let store = PostgresStore::connect(options, Arc::clone(&clock)).await.unwrap();
        Self { database, store, clock }
    }

    /// A session beside the store.
    pub(crate) async fn raw(&self) -> PgConnection {
        let options = PgConnectOptions::from_str(&self.database.url).unwrap().options([("search_path", "doorstep")]);
        options.connect().await.unwrap()
    }

    async fn number(&self, statement: String) -> i64 {
        sqlx_core::query_scalar::query_scalar(AssertSqlSafe(statement)).fetch_one(&mut self.raw().await).await.unwrap()
    }
}

#[async_trait]
impl Subject for Opened {
    fn ports(&self) -> Arc<dyn Ports> {
        self.store.clone()
    }

    fn listen(&self, listener: Arc<dyn CommitListener>) {
        self.store.set_listener(listener);
    }

    async fn reopen(self: Box<Self>) -> Box<dyn Subject> {
        self.store.close().await;
        Box::new(Self::over(Arc::clone(&self.database), Arc::clone(&self.clock)).await)
    }

    async fn count(&self, rows: &str) -> i64 {
        self.number(format!("SELECT count(*) FROM {rows}")).await
    }

    /// Rows that were given up lie in their partition until that is dropped as a whole.
    async fn log_rows(&self) -> i64 {
        self.number("SELECT count(*) FROM event_log AS e JOIN log_heads AS h USING (tenant_number) WHERE e.seq >= h.swept".to_owned()).await
    }

    async fn execute(&self, statement: &str) -> u64 {
        let done = self.raw().await.execute(AssertSqlSafe(statement.to_owned())).await;
        done.unwrap().rows_affected()
    }

    fn log_column(&self) -> (&'static str, &'static str) {
        ("seq", "seq")
    }

    fn literal(&self, id: Uuid) -> String {
        format!("'{id}'::uuid")
    }
}

testkit::conformance!(super::Postgres);
