//! The readers: a few threads, each with a connection of its own. Every call sees one committed snapshot.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection};

use crate::failure::Failure;
use crate::log::Interner;
use crate::metrics::StoreMetrics;
use crate::queue::{Bound, Queue, Weighed};

/// What a reading call sees: a connection in an open snapshot.
pub(crate) struct ReadTx {
    connection: Connection,
    interner: Interner,
    metrics: Arc<StoreMetrics>,
}

impl ReadTx {
    pub(crate) fn new(connection: Connection, metrics: Arc<StoreMetrics>) -> Self {
        Self { connection, interner: Interner::default(), metrics }
    }

    pub(crate) fn metrics(&self) -> &StoreMetrics {
        &self.metrics
    }

    /// A statement, compiled once.
    pub(crate) fn prepare(&self, text: &str) -> Result<CachedStatement<'_>, Failure> {
        Ok(self.connection.prepare_cached(text)?)
    }

    pub(crate) fn parts(&mut self) -> (&Connection, &mut Interner) {
        (&self.connection, &mut self.interner)
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs `call` in one snapshot.
    pub(crate) fn snapshot<T>(&mut self, call: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        self.prepare("BEGIN")?.execute([])?;
        let answer = catch_unwind(AssertUnwindSafe(|| call(self)));
        let ended = self.prepare("ROLLBACK").and_then(|mut statement| Ok(statement.execute([])?));
        match answer {
            Ok(answer) => ended.and(answer),
            Err(_) => Err(Failure::Store(domain::StoreError::Unavailable)),
        }
    }
}

/// A call that waits for a reader.
pub(crate) struct ReadJob(pub(crate) Box<dyn FnOnce(&mut ReadTx) + Send>);

impl Weighed for ReadJob {
    fn weight(&self) -> usize {
        1
    }
}

/// One reader's life.
pub(crate) fn run(mut tx: ReadTx, queue: &Queue<ReadJob>) {
    let one = Bound { entries: 1, bytes: 1 };
    let mut batch = Vec::with_capacity(1);
    while queue.take(&mut batch, one) {
        for ReadJob(call) in batch.drain(..) {
            call(&mut tx);
            tx.metrics().read();
        }
    }
}
