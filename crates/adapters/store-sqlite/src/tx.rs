//! The one transaction type: it implements every port that writes, over the writer's connection.

mod heads;
mod ports;

use std::sync::Arc;

use domain::{Clock, StoreError, TenantId, Timestamp};
use rusqlite::{CachedStatement, Connection};

use crate::failure::Failure;
use crate::inbox::Walk;
use crate::metrics::StoreMetrics;

pub(crate) use heads::{Heads, LogHead, read as read_head};

/// What a unit of work sees: the writer's connection in an open transaction, with what is known of the logs it touched.
pub(crate) struct WriteTx {
    connection: Connection,
    heads: Heads,
    clock: Arc<dyn Clock>,
    metrics: Arc<StoreMetrics>,
    walk: Walk,
}

impl WriteTx {
    pub(crate) fn new(connection: Connection, clock: Arc<dyn Clock>, metrics: Arc<StoreMetrics>) -> Self {
        Self { connection, heads: Heads::default(), clock, metrics, walk: Walk::default() }
    }

    /// The store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A statement, compiled once.
    pub(crate) fn prepare(&self, text: &str) -> Result<CachedStatement<'_>, Failure> {
        Ok(self.connection.prepare_cached(text)?)
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn metrics(&self) -> &StoreMetrics {
        &self.metrics
    }

    /// How far the removal of ended items has come; outlives the transaction.
    pub(crate) fn walk(&mut self) -> &mut Walk {
        &mut self.walk
    }

    /// The head row of a tenant's log as this transaction sees it.
    pub(crate) fn log_head(&mut self, tenant: &TenantId) -> Result<LogHead, Failure> {
        self.heads.get(&self.connection, tenant)?.ok_or(Failure::Store(StoreError::TenantInactive))
    }

    /// The same, for a tenant that must be served.
    pub(crate) fn active_head(&mut self, tenant: &TenantId) -> Result<LogHead, Failure> {
        let head = self.log_head(tenant)?;
        if head.is_active() { Ok(head) } else { Err(Failure::Store(StoreError::TenantInactive)) }
    }

    /// The heads and, apart from them, the connection.
    pub(crate) fn parts(&mut self) -> (&Connection, &mut Heads) {
        (&self.connection, &mut self.heads)
    }

    /// Closes the connection; the last one moves the write-ahead log into the database.
    pub(crate) fn close(self) -> rusqlite::Result<()> {
        self.connection.close().map_err(|(_, error)| error)
    }
}
