//! The port to the tails of logs: bells ring only while the tenant's tail runs.

use async_trait::async_trait;
use domain::{StoreError, TenantId};

/// Keeps tails running while somebody waits.
#[async_trait]
pub trait Tails: Send + Sync {
    /// Has the tail of `tenant` run until what is answered is dropped. When the call returns, every event committed afterwards reaches
    /// [`crate::Bells::observe`]: whoever reads the store after the call misses nothing.
    ///
    /// # Errors
    /// When the tail could not be started.
    async fn keep(&self, tenant: &TenantId) -> Result<Box<dyn Send + Sync>, StoreError>;
}
