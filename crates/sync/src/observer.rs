//! Who must see every event before a reader does.

use std::sync::Arc;

use async_trait::async_trait;
use authz::Authorizer;
use domain::{Event, StoreError, TenantId};

/// Sees every event of a tenant in order, once, before the hub position reaches it. The authorizer is one.
#[async_trait]
pub trait Observer: Send + Sync {
    /// The tail runs: every event above its first position will be handed to [`Observer::observe`].
    async fn tail_started(&self, tenant: &TenantId) -> Result<(), StoreError>;
    /// `events` are consecutive. On an error the same call is repeated later, and no position moves.
    async fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) -> Result<(), StoreError>;
    /// The tail stopped.
    fn tail_stopped(&self, tenant: &TenantId);
}

#[async_trait]
impl Observer for Authorizer {
    async fn tail_started(&self, tenant: &TenantId) -> Result<(), StoreError> {
        Self::tail_started(self, tenant).await
    }

    async fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) -> Result<(), StoreError> {
        Self::observe(self, tenant, events).await
    }

    fn tail_stopped(&self, tenant: &TenantId) {
        Self::tail_stopped(self, tenant);
    }
}
