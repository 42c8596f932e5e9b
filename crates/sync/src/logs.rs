//! The tails of this process: which tenants have one, and who started it.

use std::sync::Arc;

use domain::{Event, StoreError, SyncEpoch, TenantId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{CommitListener, LogStore, Observer, Settings, TenantLog};

/// The logs that this process has readers for.
#[derive(Debug)]
pub struct Logs {}

impl Logs {
    /// Starts the task that polls the heads of all live tenants; tails start with [`Logs::open`]. All of them end with `cancel`.
    pub fn start(
        store: Arc<dyn LogStore>,
        observer: Arc<dyn Observer>,
        settings: Settings,
        tracker: TaskTracker,
        cancel: CancellationToken,
    ) -> Arc<Self> {
        let _ = (store, observer, settings, tracker, cancel);
        todo!()
    }

    /// The tenant's log; starts its tail when none runs.
    ///
    /// # Errors
    /// [`StoreError::TenantInactive`] for a tenant that is not there, [`StoreError::Overloaded`] when `sync.max_live_tenants` have readers, [`StoreError::Unavailable`] when
    /// the process stops; otherwise the store's.
    pub async fn open(&self, tenant: &TenantId) -> Result<Arc<TenantLog>, StoreError> {
        let _ = tenant;
        todo!()
    }
}

impl CommitListener for Logs {
    fn committed(&self, tenant: &TenantId, epoch: SyncEpoch, events: &[Arc<Event>]) {
        let _ = (tenant, epoch, events);
    }
}
