//! The REST feed of consumers: polls through the window that the cursor row keeps (design/stream.md, "REST window").
//!
//! The rules of the window are pure and live in `agents`; here they are given a row, events and time. Nothing is locked while a poll
//! waits, and every answer with events was stored before by compare-and-swap.

mod poll;

use std::sync::Arc;

use agents::{ConsumerError, ConsumerFeed, ConsumerKey, CursorStore, FeedHead, FeedPage, PollRequest};
use async_trait::async_trait;
use authz::Caller;
use domain::{Seq, TenantId};

use crate::Gateway;
use crate::registry::Held;

/// Implements [`ConsumerFeed`] on the delivery engine.
pub struct Feed {
    gateway: Arc<Gateway>,
    cursors: Arc<dyn CursorStore>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

impl Feed {
    /// A feed that shares logs, rights and sessions with `gateway`; `cursors` holds the windows.
    pub fn new(gateway: Arc<Gateway>, cursors: Arc<dyn CursorStore>) -> Self {
        Self { gateway, cursors }
    }
}

#[async_trait]
impl ConsumerFeed for Feed {
    async fn poll(&self, caller: &Caller, request: PollRequest) -> Result<FeedPage, ConsumerError> {
        poll::answer(self, caller, request).await
    }

    fn acked(&self, key: &ConsumerKey, acked: Seq) {
        if let Some(Held { session, link }) = self.gateway.registry.held(key) {
            session.adopt(acked);
            if let Some(link) = link {
                link.wake();
            }
        }
        self.gateway.waiters.wake(key);
    }

    async fn head(&self, tenant: &TenantId) -> Result<FeedHead, ConsumerError> {
        let log = self.gateway.logs.open(tenant).await?;
        let head = log.committed_head().await?;
        Ok(FeedHead { head: head.seq, epoch: head.epoch, floor: head.floor })
    }
}
