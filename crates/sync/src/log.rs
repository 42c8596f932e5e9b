//! One tenant's log as this process reads it: the hub position, the hot ring, then the store.

use std::fmt;
use std::sync::Arc;

use domain::{Seq, StoreError, SyncEpoch, TenantId};
use tokio::sync::watch;

use crate::shared::{HISTORY_REPLACED, Shared};
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
#[error("the log's history was replaced")]
pub struct Replaced;

/// One tenant's log. Its tail runs while a handle lives and `sync.tail_linger` after.
pub struct TenantLog {
    shared: Arc<Shared>,
}

impl fmt::Debug for TenantLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantLog").field("tenant", &self.shared.tenant).field("position", &*self.shared.position.borrow()).finish()
    }
}

impl Drop for TenantLog {
    fn drop(&mut self) {
        self.shared.set_idle();
    }
}

impl TenantLog {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.shared.tenant
    }

    /// The hub position: everything up to here was observed by the authorizer.
    pub fn position(&self) -> Seq {
        self.shared.seq()
    }

    /// The history that this handle reads; it never changes.
    pub fn epoch(&self) -> SyncEpoch {
        self.shared.epoch
    }

    /// Follows the position. Moves are coalesced; the last one is always seen.
    pub fn subscribe(&self) -> watch::Receiver<Position> {
        self.shared.position.subscribe()
    }

    /// Rows of the range: from the ring when it holds the first of them, else from the store. Without `up_to` the hub position bounds it; an explicit `up_to` is taken as it is,
    /// also above the hub position.
    ///
    /// Fewer rows than asked for are no sign of the end: a reader goes on until it has reached its bound. What the ring answers carries a floor that says nothing is missed.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the history was replaced; otherwise the store's.
    pub async fn read(&self, range: PageRange) -> Result<Page, StoreError> {
        let (shared, metrics) = (&self.shared, &self.shared.parts.metrics);
        let position = shared.seq();
        let up_to = range.up_to.unwrap_or(position);
        let events =
            if up_to <= range.after { Some(Vec::new()) } else { shared.recent(range.after, up_to, range.max_events, range.max_bytes) };
        if shared.is_replaced() {
            return Err(HISTORY_REPLACED);
        }
        if let Some(events) = events {
            metrics.ring_reads.increment();
            return Ok(Page { events, head: shared.head_of_ring(range.after) });
        }
        metrics.store_reads.increment();
        let page = shared.parts.store.page(&shared.tenant, PageRange { up_to: Some(up_to), ..range }).await?;
        if shared.note_head(&page.head, position) { Ok(page) } else { Err(HISTORY_REPLACED) }
    }

    /// The head row, read from the store now; at least the hub position. A head above that makes the tail look at once.
    ///
    /// # Errors
    /// As [`TenantLog::read`]; [`StoreError::TenantInactive`] when the tenant is gone.
    pub async fn committed_head(&self) -> Result<Head, StoreError> {
        let position = self.position();
        let Some(head) = self.shared.parts.store.head(&self.shared.tenant).await? else {
            self.shared.mark_replaced();
            return Err(StoreError::TenantInactive);
        };
        if self.shared.note_head(&head, position) { Ok(head) } else { Err(HISTORY_REPLACED) }
    }

    /// Waits until the hub position is at least `seq`, and makes the tail look at the store for it at once. Never ends for a position above the head: bound the wait.
    ///
    /// # Errors
    /// [`Replaced`].
    pub async fn wait_for(&self, seq: Seq) -> Result<(), Replaced> {
        let mut receiver = self.subscribe();
        if self.position() < seq {
            self.shared.inbox.look_for(seq);
        }
        let reached = receiver.wait_for(|position| position.replaced || position.seq >= seq);
        tokio::select! {
            biased;
            position = reached => match position {
                Ok(position) if !position.replaced => Ok(()),
                _ => Err(Replaced),
            },
            () = self.shared.cancel.cancelled() => Err(Replaced),
        }
    }
}
