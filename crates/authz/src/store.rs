//! The ports to what is stored about identities, and the union that an administrative change needs.

use async_trait::async_trait;
use domain::{Appended, ChannelId, ChannelRef, GrantId, PrincipalId, Publication, Seq, SpaceId, StoreError, TenantId, Timestamp, TokenId};

use crate::{Channel, Credential, Grant, Principal, Resource, Rights, Space, Tenant, TenantState, TokenHash, TokenRecord};

/// A position in a listing: entries strictly after `after` in the listing's own order, at most `limit`.
#[derive(Clone, Debug)]
pub struct Keyset {
    /// The last entry that the reader has; from the beginning when absent.
    pub after: Option<String>,
    /// At most this many.
    pub limit: usize,
}

/// Whether a request was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditDecision {
    /// It was done.
    Allow,
    /// It was refused.
    Deny,
}

/// One line of the audit log. Denials are aggregated per actor, action and minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number, growing with time.
    pub id: u64,
    /// When; the start of the minute for aggregated denials.
    pub at: Timestamp,
    /// Who; absent when nobody was recognised.
    pub actor: Option<PrincipalId>,
    /// The action's registered name.
    pub action: String,
    /// What it was aimed at, as text.
    pub target: String,
    /// The decision.
    pub decision: AuditDecision,
    /// How many alike are counted in this line.
    pub count: u64,
    /// What was before, as JSON text; administrative changes only.
    pub before: Option<String>,
    /// What is after, as JSON text; administrative changes only.
    pub after: Option<String>,
}

/// Which entries to list.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only of this actor.
    pub actor: Option<PrincipalId>,
    /// Only of this action.
    pub action: Option<String>,
    /// Only with this decision.
    pub decision: Option<AuditDecision>,
}

/// That a token was used, for its `last_used_at`.
#[derive(Clone, Debug)]
pub struct TokenUse {
    /// The tenant.
    pub tenant: TenantId,
    /// The token.
    pub token: TokenId,
    /// When.
    pub at: Timestamp,
}

/// The stored answer of a creating request with an `Idempotency-Key`, without one-time secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentAnswer {
    /// SHA-256 of method, path and body.
    pub request_hash: [u8; 32],
    /// The status that was answered.
    pub status: u16,
    /// The body that was answered, without one-time secrets.
    pub body: String,
}

/// What can be read about identities. Each call sees one committed snapshot. What is not there is `Ok(None)`.
#[async_trait]
pub trait IdentityStore: Send + Sync {
    /// The token with this hash, with its principal and tenant, whatever their state.
    async fn credential(&self, hash: &TokenHash) -> Result<Option<Credential>, StoreError>;
    /// What a principal may see and do.
    async fn rights(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Option<Rights>, StoreError>;
    /// One tenant.
    async fn tenant(&self, tenant: &TenantId) -> Result<Option<Tenant>, StoreError>;
    /// All tenants by id.
    async fn tenants(&self, keyset: &Keyset) -> Result<Vec<Tenant>, StoreError>;
    /// One principal.
    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError>;
    /// Principals by id.
    async fn principals(&self, tenant: &TenantId, keyset: &Keyset) -> Result<Vec<Principal>, StoreError>;
    /// Tokens of a principal by id (creation order).
    async fn tokens(&self, tenant: &TenantId, principal: &PrincipalId, keyset: &Keyset) -> Result<Vec<TokenRecord>, StoreError>;
    /// Spaces by id.
    async fn spaces(&self, tenant: &TenantId, keyset: &Keyset) -> Result<Vec<Space>, StoreError>;
    /// Channels of a space by id; `None` when there is no such space.
    async fn channels(&self, tenant: &TenantId, space: &SpaceId, keyset: &Keyset) -> Result<Option<Vec<Channel>>, StoreError>;
    /// Whether a channel exists.
    async fn channel_exists(&self, tenant: &TenantId, channel: &ChannelRef) -> Result<bool, StoreError>;
    /// Grants by id (creation order), optionally of one principal.
    async fn grants(&self, tenant: &TenantId, principal: Option<&PrincipalId>, keyset: &Keyset) -> Result<Vec<Grant>, StoreError>;
    /// Audit entries, newest first; `keyset.after` is the id of the last entry that the reader has.
    async fn audit(&self, tenant: &TenantId, filter: &AuditFilter, keyset: &Keyset) -> Result<Vec<AuditEntry>, StoreError>;
    /// Adds up denials: one row per (tenant, actor, action, target, minute), its count raised. Entries of an unknown tenant are left out.
    async fn record_denials(&self, denials: &[(TenantId, AuditEntry)]) -> Result<(), StoreError>;
    /// Notes uses of tokens; a later instant wins.
    async fn touch_tokens(&self, uses: &[TokenUse]) -> Result<(), StoreError>;
    /// The stored answer under an idempotency key of a principal, if it is younger than `not_before`.
    async fn idempotent_answer(
        &self,
        tenant: &TenantId,
        principal: &PrincipalId,
        key: &str,
        not_before: Timestamp,
    ) -> Result<Option<IdempotentAnswer>, StoreError>;
    /// Removes audit entries and idempotency answers older than these instants, at most `limit` of each; answers how many went.
    async fn prune(&self, audit_before: Timestamp, answers_before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

/// What an administrative change writes. Creating what exists is [`StoreError::Conflict`]; changing what is not there answers `false` or `None`.
#[async_trait]
pub trait IdentityWrite: Send {
    /// One principal, as this transaction sees it.
    async fn principal(&mut self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError>;
    /// How many enabled owners the tenant has, as this transaction sees it.
    async fn owners(&mut self, tenant: &TenantId) -> Result<u64, StoreError>;
    /// Creates a tenant with an empty log at head 0 and a fresh epoch.
    async fn create_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError>;
    /// Changes a tenant's state.
    async fn set_tenant_state(&mut self, tenant: &TenantId, state: TenantState) -> Result<bool, StoreError>;
    /// Creates a principal.
    async fn create_principal(&mut self, tenant: &TenantId, principal: &Principal) -> Result<(), StoreError>;
    /// Replaces display name, role and enabled of a principal.
    async fn update_principal(&mut self, tenant: &TenantId, principal: &Principal) -> Result<bool, StoreError>;
    /// Deletes a principal with its tokens, grants and consumers.
    async fn delete_principal(&mut self, tenant: &TenantId, id: &PrincipalId) -> Result<bool, StoreError>;
    /// How many tokens of the principal are neither revoked nor expired at `now`.
    async fn live_tokens(&mut self, tenant: &TenantId, principal: &PrincipalId, now: Timestamp) -> Result<u64, StoreError>;
    /// Creates a token.
    async fn create_token(&mut self, tenant: &TenantId, token: &TokenRecord) -> Result<(), StoreError>;
    /// Revokes a token of a principal; `false` when there is none or it was revoked before.
    async fn revoke_token(&mut self, tenant: &TenantId, principal: &PrincipalId, id: TokenId, at: Timestamp) -> Result<bool, StoreError>;
    /// Revokes every token of a principal that is not revoked; answers them.
    async fn revoke_tokens(&mut self, tenant: &TenantId, principal: &PrincipalId, at: Timestamp) -> Result<Vec<TokenId>, StoreError>;
    /// Creates a space.
    async fn create_space(&mut self, tenant: &TenantId, space: &Space) -> Result<(), StoreError>;
    /// Deletes a space with its channels and the grants on them; answers the deleted grants, `None` when there is no such space.
    async fn delete_space(&mut self, tenant: &TenantId, space: &SpaceId) -> Result<Option<Vec<Grant>>, StoreError>;
    /// Creates a channel; `false` when there is no such space.
    async fn create_channel(&mut self, tenant: &TenantId, channel: &Channel) -> Result<bool, StoreError>;
    /// Deletes a channel with the grants on it; answers the deleted grants, `None` when there is no such channel.
    async fn delete_channel(&mut self, tenant: &TenantId, space: &SpaceId, channel: &ChannelId) -> Result<Option<Vec<Grant>>, StoreError>;
    /// Whether the resource exists: `*` always, a space or channel when created.
    async fn resource_exists(&mut self, tenant: &TenantId, resource: &Resource) -> Result<bool, StoreError>;
    /// Creates a grant; answers the present one when the principal already holds that permission on that resource.
    async fn create_grant(&mut self, tenant: &TenantId, grant: &Grant) -> Result<Option<Grant>, StoreError>;
    /// Deletes a grant and answers it.
    async fn delete_grant(&mut self, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, StoreError>;
    /// One grant, as this transaction sees it.
    async fn grant(&mut self, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, StoreError>;
}

/// The one write to the log that this module needs: its own events, with the same row code as every append.
#[async_trait]
pub trait AccessLogWrite: Send {
    /// Appends events of the server's own (`access.changed`, `agent.updated`).
    async fn append_access(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, StoreError>;
    /// The head of the log as this transaction sees it.
    async fn head(&mut self, tenant: &TenantId) -> Result<Seq, StoreError>;
}

/// Writing the audit log.
#[async_trait]
pub trait AuditWrite: Send {
    /// Adds an entry; its `id` is chosen by the store.
    async fn audit(&mut self, tenant: &TenantId, entry: &AuditEntry) -> Result<(), StoreError>;
}

/// Keeping the answers of creating requests that carry an `Idempotency-Key`, in the transaction that creates. Reading them is
/// [`IdentityStore::idempotent_answer`].
#[async_trait]
pub trait AnswerWrite: Send {
    /// Stores the answer of a creating request; [`StoreError::Conflict`] when the key is taken since `not_before`.
    async fn store_answer(
        &mut self,
        tenant: &TenantId,
        principal: &PrincipalId,
        key: &str,
        answer: &IdempotentAnswer,
        now: Timestamp,
        not_before: Timestamp,
    ) -> Result<(), StoreError>;
}

/// Everything that an administrative change touches, in one transaction.
pub trait AdminTx: IdentityWrite + AccessLogWrite + AuditWrite + AnswerWrite {}
impl<T: IdentityWrite + AccessLogWrite + AuditWrite + AnswerWrite + ?Sized> AdminTx for T {}
