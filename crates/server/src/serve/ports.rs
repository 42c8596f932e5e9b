//! The ports of the HTTP interface that the process itself implements.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::Clock;
use hooks::{HookUrl, OutboundAnswer, OutboundClient, OutboundError, OutboundRequest, UrlRefusal};
use http_api::{Backup, BackupError, NotReady, Readiness};
use protocol::admin::BackupReport;
use store_sqlite::UpkeepError;
use sync::{LogStore, Logs};
use tokio::sync::Mutex;

use crate::store::Engine;

/// No calls to the outside: for commands on a stopped server's store.
pub(crate) struct NoCalls;

#[async_trait]
impl OutboundClient for NoCalls {
    async fn check(&self, _: &HookUrl) -> Result<(), UrlRefusal> {
        Err(UrlRefusal::Unresolvable)
    }

    async fn post(&self, _: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        Err(OutboundError::Connect)
    }
}

/// Ready while the store answers, the tails follow, and the process is not stopping.
pub(super) struct ProcessReadiness {
    store: Arc<dyn LogStore>,
    logs: Arc<Logs>,
    draining: AtomicBool,
}

/// How long the store may take to answer before it counts as unreachable.
const ANSWER_WITHIN: Duration = Duration::from_millis(900);

impl ProcessReadiness {
    pub(super) fn new(store: Arc<dyn LogStore>, logs: Arc<Logs>) -> Self {
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
    engine: Engine,
    clock: Arc<dyn Clock>,
    running: Mutex<()>,
}

impl StoreBackup {
    pub(super) fn new(engine: Engine, clock: Arc<dyn Clock>) -> Self {
        Self { engine, clock, running: Mutex::new(()) }
    }
}

#[async_trait]
impl Backup for StoreBackup {
    async fn backup(&self, path: &str) -> Result<BackupReport, BackupError> {
        let Engine::Embedded(store) = &self.engine else { return Err(BackupError::NotHere) };
        let Ok(_running) = self.running.try_lock() else { return Err(BackupError::Running) };
        let to = Path::new(path);
        if !to.is_absolute() {
            return Err(BackupError::Path("the path must be absolute: it is the server's".to_owned()));
        }
        let started_at = self.clock.now();
        let report = store.backup(to).await.map_err(refusal)?;
        Ok(BackupReport { path: path.to_owned(), size_bytes: report.bytes, started_at, finished_at: self.clock.now() })
    }
}

/// What the instance's operator is told: about the path everything, about the store nothing of the inside.
fn refusal(error: UpkeepError) -> BackupError {
    match error {
        UpkeepError::Store(error) => BackupError::Store(error),
        UpkeepError::Exists { .. } | UpkeepError::File { .. } => BackupError::Path(error.to_string()),
        other => {
            tracing::error!(error.cause = %other, "the backup failed");
            BackupError::Store(domain::StoreError::Unavailable)
        }
    }
}
