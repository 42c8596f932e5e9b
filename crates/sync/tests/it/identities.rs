//! An identity store that knows tenants and nothing else.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{
    AuditEntry, AuditFilter, Channel, Credential, Grant, IdempotentAnswer, IdentityStore, Keyset, Principal, Rights, Space, Tenant,
    TenantState, TokenHash, TokenRecord, TokenUse,
};
use domain::{ChannelRef, PrincipalId, Seq, SpaceId, StoreError, TenantId, Timestamp};

use crate::fakes::{epoch, tenant};

pub(crate) struct Tenants(Vec<Tenant>);

impl Tenants {
    pub(crate) fn active(names: &[&str]) -> Arc<Self> {
        let make = |name: &&str| Tenant {
            id: tenant(name),
            state: TenantState::Active,
            head: Seq::ZERO,
            epoch: epoch(1),
            created_at: Timestamp::from_micros(0),
        };
        Arc::new(Self(names.iter().map(make).collect()))
    }
}

/// What nobody asks here.
fn not_asked<T>() -> Result<T, StoreError> {
    Err(StoreError::Unavailable)
}

#[async_trait]
impl IdentityStore for Tenants {
    async fn tenants(&self, keyset: &Keyset) -> Result<Vec<Tenant>, StoreError> {
        let after = |each: &&Tenant| keyset.after.as_deref().is_none_or(|after| each.id.as_str() > after);
        Ok(self.0.iter().filter(after).take(keyset.limit).cloned().collect())
    }

    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, StoreError> {
        Ok(self.0.iter().find(|each| each.id == *id).cloned())
    }

    async fn credential(&self, _: &TokenHash) -> Result<Option<Credential>, StoreError> {
        not_asked()
    }

    async fn rights(&self, _: &TenantId, _: &PrincipalId) -> Result<Option<Rights>, StoreError> {
        not_asked()
    }

    async fn principal(&self, _: &TenantId, _: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        not_asked()
    }

    async fn principals(&self, _: &TenantId, _: &Keyset) -> Result<Vec<Principal>, StoreError> {
        not_asked()
    }

    async fn tokens(&self, _: &TenantId, _: &PrincipalId, _: &Keyset) -> Result<Vec<TokenRecord>, StoreError> {
        not_asked()
    }

    async fn spaces(&self, _: &TenantId, _: &Keyset) -> Result<Vec<Space>, StoreError> {
        not_asked()
    }

    async fn channels(&self, _: &TenantId, _: &SpaceId, _: &Keyset) -> Result<Option<Vec<Channel>>, StoreError> {
        not_asked()
    }

    async fn channel_exists(&self, _: &TenantId, _: &ChannelRef) -> Result<bool, StoreError> {
        not_asked()
    }

    async fn grants(&self, _: &TenantId, _: Option<&PrincipalId>, _: &Keyset) -> Result<Vec<Grant>, StoreError> {
        not_asked()
    }

    async fn audit(&self, _: &TenantId, _: &AuditFilter, _: &Keyset) -> Result<Vec<AuditEntry>, StoreError> {
        not_asked()
    }

    async fn record_denials(&self, _: &[(TenantId, AuditEntry)]) -> Result<(), StoreError> {
        not_asked()
    }

    async fn touch_tokens(&self, _: &[TokenUse]) -> Result<(), StoreError> {
        not_asked()
    }

    async fn idempotent_answer(
        &self,
        _: &TenantId,
        _: &PrincipalId,
        _: &str,
        _: Timestamp,
    ) -> Result<Option<IdempotentAnswer>, StoreError> {
        not_asked()
    }

    async fn prune(&self, _: Timestamp, _: Timestamp, _: usize) -> Result<u64, StoreError> {
        not_asked()
    }
}
