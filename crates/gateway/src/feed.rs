//! The REST feed of consumers: polls through the window that the cursor row keeps.

use std::sync::Arc;

use agents::{ConsumerError, ConsumerFeed, ConsumerKey, CursorStore, FeedHead, FeedPage, PollRequest};
use async_trait::async_trait;
use authz::Caller;
use domain::{Seq, TenantId};

use crate::Gateway;

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
    /// A feed that shares logs, rights and sessions with `gateway`.
    pub fn new(gateway: Arc<Gateway>, cursors: Arc<dyn CursorStore>) -> Self {
        Self { gateway, cursors }
    }
}

#[async_trait]
impl ConsumerFeed for Feed {
    async fn poll(&self, caller: &Caller, request: PollRequest) -> Result<FeedPage, ConsumerError> {
        let _ = (&self.gateway, &self.cursors, caller, request);
        todo!()
    }

    fn acked(&self, key: &ConsumerKey, acked: Seq) {
        let _ = (key, acked);
    }

    async fn head(&self, tenant: &TenantId) -> Result<FeedHead, ConsumerError> {
        let _ = tenant;
        todo!()
    }
}
