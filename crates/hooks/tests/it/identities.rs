//! An identity store with two tenants: agents, a person and an operator in one, agents in the other, each with a token of every scope.

use async_trait::async_trait;
use authz::{
    AuditEntry, AuditFilter, Channel, Credential, Grant, IdempotentAnswer, IdentityStore, Keyset, Principal, PrincipalKind, Rights, Role,
    Scope, Space, Tenant, TenantState, TokenHash, TokenRecord, TokenSecret, TokenUse,
};
use domain::{ChannelRef, PrincipalId, SpaceId, StoreError, TenantId, Timestamp};

use crate::memory::{START, other_tenant, tenant};

pub(crate) struct Identities {
    principals: Vec<(Principal, TokenSecret, Option<Timestamp>)>,
}

impl Identities {
    pub(crate) fn new() -> Self {
        let make = |id: &str, kind, role| {
            let id = PrincipalId::parse(id).unwrap();
            let principal = Principal { id, kind, role, display_name: None, enabled: true, created_at: START };
            (principal, TokenSecret::generate(kind).unwrap(), None)
        };
        let mut principals = vec![
            make("alpha", PrincipalKind::Agent, Role::Member),
            make("beta", PrincipalKind::Agent, Role::Member),
            make("sam", PrincipalKind::Person, Role::Member),
            make("alex", PrincipalKind::Person, Role::Operator),
            make("other-omega", PrincipalKind::Agent, Role::Member),
        ];
        for number in 0..100 {
            principals.push(make(&format!("agent{number}"), PrincipalKind::Agent, Role::Member));
        }
        Self { principals }
    }

    fn tenant_of(id: &PrincipalId) -> TenantId {
        if id.as_str().starts_with("other-") { other_tenant() } else { tenant() }
    }

    pub(crate) fn secret(&self, id: &str) -> &str {
        self.principals.iter().find(|(principal, ..)| principal.id.as_str() == id).unwrap().1.reveal()
    }

    fn find(&self, id: &PrincipalId) -> Option<&Principal> {
        self.principals.iter().map(|(principal, ..)| principal).find(|principal| principal.id == *id)
    }
}

/// What nobody asks here.
fn not_asked<T>() -> Result<T, StoreError> {
    Err(StoreError::Unavailable)
}

#[async_trait]
impl IdentityStore for Identities {
    async fn credential(&self, hash: &TokenHash) -> Result<Option<Credential>, StoreError> {
        let found = self.principals.iter().enumerate().find(|(_, (_, secret, _))| secret.hash() == *hash);
        Ok(found.map(|(number, (principal, secret, expires_at))| Credential {
            tenant: Self::tenant_of(&principal.id),
            tenant_state: TenantState::Active,
            token: TokenRecord {
                id: format!("00000000-0000-0000-0002-{number:012}").parse().unwrap(),
                principal: principal.id.clone(),
                hash: secret.hash(),
                prefix: secret.prefix().to_owned(),
                scopes: Scope::ALL.into_iter().collect(),
                created_at: START,
                expires_at: *expires_at,
                last_used_at: None,
                revoked_at: None,
            },
            principal: principal.clone(),
        }))
    }

    async fn rights(&self, asked: &TenantId, id: &PrincipalId) -> Result<Option<Rights>, StoreError> {
        Ok(self.find(id).filter(|_| Self::tenant_of(id) == *asked).map(|principal| Rights {
            principal: principal.id.clone(),
            kind: principal.kind,
            role: principal.role,
            enabled: true,
            grants: Vec::new(),
        }))
    }

    async fn principal(&self, asked: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        Ok(self.find(id).filter(|_| Self::tenant_of(id) == *asked).cloned())
    }

    async fn record_denials(&self, _: &[(TenantId, AuditEntry)]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn touch_tokens(&self, _: &[TokenUse]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn tenant(&self, _: &TenantId) -> Result<Option<Tenant>, StoreError> {
        not_asked()
    }

    async fn tenants(&self, _: &Keyset) -> Result<Vec<Tenant>, StoreError> {
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
