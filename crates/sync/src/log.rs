//! One tenant's log as this process reads it: the hub position, the hot ring, then the store.

use domain::{Seq, StoreError, SyncEpoch, TenantId};
use tokio::sync::watch;

use crate::{Head, Page, PageRange};

/// How far this process has observed a tenant's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The hub position: the highest position that was observed.
    pub seq: Seq,
    /// The history that `seq` belongs to.
    pub epoch: SyncEpoch,
    /// The log's history was replaced, or the tenant is gone: nothing more comes. Readers close with 4013 and open the log afresh.
    pub replaced: bool,
}

/// The log's history was replaced, or the process stops: the position will never be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log was replaced")]
pub struct Replaced;

/// One tenant's log. Its tail runs while a handle lives and `sync.tail_linger` after.
#[derive(Debug)]
pub struct TenantLog {}

impl TenantLog {
    /// The tenant.
    pub fn tenant(&self) -> &TenantId {
        todo!()
    }

    /// The hub position: everything up to here was observed by the authorizer.
    pub fn position(&self) -> Seq {
        todo!()
    }

    /// The history that this handle reads; it never changes.
    pub fn epoch(&self) -> SyncEpoch {
        todo!()
    }

    /// Follows the position. Every move that is not overtaken by the next is seen; coalescing.
    pub fn subscribe(&self) -> watch::Receiver<Position> {
        todo!()
    }

    /// Rows of the range: from the ring when it holds the first of them, else from the store. Without `up_to` the hub position bounds it; an explicit `up_to` is taken as it is.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the history was replaced; otherwise the store's.
    pub async fn read(&self, range: PageRange) -> Result<Page, StoreError> {
        let _ = range;
        todo!()
    }

    /// The head row, read from the store now; at least the hub position.
    ///
    /// # Errors
    /// As [`TenantLog::read`]; [`StoreError::TenantInactive`] when the tenant is gone.
    pub async fn committed_head(&self) -> Result<Head, StoreError> {
        todo!()
    }

    /// Waits until the hub position is at least `seq`, and makes the tail look at the store for it at once.
    ///
    /// # Errors
    /// [`Replaced`].
    pub async fn wait_for(&self, seq: Seq) -> Result<(), Replaced> {
        let _ = seq;
        todo!()
    }
}
