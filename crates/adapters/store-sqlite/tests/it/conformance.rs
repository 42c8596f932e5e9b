//! The conformance suite over this store: what every store must do is said in `testkit::conformance`.

use std::sync::Arc;

use async_trait::async_trait;
use domain::Clock;
use doorstep_store_sqlite::{SqliteStore, StoreOptions};
use rusqlite::Connection;
use sync::CommitListener;
use tempfile::TempDir;
use testkit::conformance::{Harness, Ports, Subject};
use uuid::Uuid;

/// A store in a directory of its own.
pub(crate) struct Sqlite;

#[async_trait]
impl Harness for Sqlite {
    async fn open(&self, clock: Arc<dyn Clock>) -> Box<dyn Subject> {
        Box::new(Opened::new(Arc::new(tempfile::tempdir().unwrap()), clock))
    }
}

pub(crate) struct Opened {
    pub(crate) dir: Arc<TempDir>,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Opened {
    pub(crate) fn new(dir: Arc<TempDir>, clock: Arc<dyn Clock>) -> Self {
        let store = SqliteStore::open(dir.path(), StoreOptions::default(), Arc::clone(&clock)).unwrap();
        Self { dir, store, clock }
    }

    fn raw(&self) -> Connection {
        Connection::open(self.store.path()).unwrap()
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
        Box::new(Self::new(Arc::clone(&self.dir), Arc::clone(&self.clock)))
    }

    async fn count(&self, rows: &str) -> i64 {
        self.raw().query_row(&format!("SELECT count(*) FROM {rows}"), [], |row| row.get(0)).unwrap()
    }

    async fn log_rows(&self) -> i64 {
        self.count("event_log").await
    }

    async fn execute(&self, statement: &str) -> u64 {
        self.raw().execute(statement, []).unwrap() as u64
    }

    fn log_column(&self) -> (&'static str, &'static str) {
        ("position", "(position & 0xff)")
    }

    fn literal(&self, id: Uuid) -> String {
        format!("x'{}'", id.simple())
    }
}

testkit::conformance!(super::Sqlite);
