//! The ports to stored hooks. Rows only: who is rung, when and how often is decided in this crate, once for every store.

use async_trait::async_trait;
use domain::{PrincipalId, Publication, Seq, StoreError, SyncEpoch, TenantId, Timestamp};
use sync::Head;

use crate::{AttemptRecord, Delivery, Hook, HookId, HookKey, HookKind, KeyId, Sealed, ServerKey, WebhookId};

/// How far the dispatcher has read a tenant's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// The history of the log.
    pub epoch: SyncEpoch,
    /// Everything up to and with it was looked at.
    pub seq: Seq,
}

/// A group of tenants that one node works for. An embedded store has one group, number 0; a shared one has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupNumber(pub u32);

/// How often a group was taken: the fence of whoever took it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// A tenant that has hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantHooks {
    /// The tenant.
    pub tenant: TenantId,
    /// Its group.
    pub group: GroupNumber,
    /// How far its log was looked at; absent before the first hook's first step.
    pub position: Option<LogPosition>,
}

/// Which rings are due.
#[derive(Clone, Copy, Debug)]
pub struct DueQuery<'a> {
    /// By when.
    pub now: Timestamp,
    /// Of at most this many hooks.
    pub hooks: usize,
    /// Of each hook at most this many rings.
    pub per_hook: usize,
    /// Only of tenants of these groups.
    pub groups: &'a [GroupNumber],
    /// Not of these hooks.
    pub except: &'a [HookId],
    /// Not of these tenants.
    pub except_tenants: &'a [TenantId],
}

/// A hook with rings that are due, in one snapshot.
#[derive(Clone, Debug)]
pub struct DueHook {
    /// The hook.
    pub hook: Hook,
    /// The group of its tenant.
    pub group: GroupNumber,
    /// Its keys, expired ones too, newest first.
    pub keys: Vec<HookKey>,
    /// Its rings, the longest due first; never empty.
    pub deliveries: Vec<Delivery>,
}

/// A sealed secret with its place, for renewing what seals it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRow {
    /// The tenant.
    pub tenant: TenantId,
    /// The hook.
    pub hook: HookId,
    /// The key.
    pub key: KeyId,
    /// The secret.
    pub secret: Sealed,
}

/// What is known of all hooks of the store, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookTotals {
    /// Hooks that are rung.
    pub active: u64,
    /// Hooks whose challenge is open.
    pub pending: u64,
    /// Hooks that are not rung any more.
    pub disabled: u64,
    /// Outstanding rings.
    pub outstanding: u64,
}

/// Reading hooks. Each call sees one committed snapshot. A row that cannot be read is left out, counted and logged once by the store.
#[async_trait]
pub trait HookStore: Send + Sync {
    /// One hook of a tenant.
    async fn hook(&self, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, StoreError>;
    /// Hooks of a kind by id (creation order), strictly after `after`, at most `limit`; of one agent, or of the whole tenant.
    async fn hooks(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        kind: HookKind,
        after: Option<HookId>,
        limit: usize,
    ) -> Result<Vec<Hook>, StoreError>;
    /// The hooks of these agents that are [`crate::HookState::Active`], of both kinds.
    async fn active_hooks(&self, tenant: &TenantId, agents: &[PrincipalId]) -> Result<Vec<Hook>, StoreError>;
    /// Every active hook of a tenant by id, strictly after `after`, at most `limit`.
    async fn all_active_hooks(&self, tenant: &TenantId, after: Option<HookId>, limit: usize) -> Result<Vec<Hook>, StoreError>;
    /// The keys of a hook, expired ones too, newest first.
    async fn keys(&self, hook: HookId) -> Result<Vec<HookKey>, StoreError>;
    /// The last attempts of a hook, newest first, at most `limit`.
    async fn attempts(&self, hook: HookId, limit: usize) -> Result<Vec<AttemptRecord>, StoreError>;
    /// Hooks with rings that are due, each with the longest due of them. Only of active tenants and enabled agents. Tenants take turns (no tenant's
    /// second hook before every other tenant's first), and within a tenant the longest due come first. Rings of hooks in any state are answered.
    async fn due(&self, query: DueQuery<'_>) -> Result<Vec<DueHook>, StoreError>;
    /// When the next ring of an active tenant of these groups is due; it may be past.
    async fn next_due(&self, groups: &[GroupNumber]) -> Result<Option<Timestamp>, StoreError>;
    /// Active tenants of these groups that have a hook in any state, by id, strictly after `after`, at most `limit`.
    async fn tenants(&self, groups: &[GroupNumber], after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantHooks>, StoreError>;
    /// The groups that there are. Each tenant is in one of them, and stays there.
    async fn groups(&self) -> Result<Vec<GroupNumber>, StoreError>;
    /// The server's signing keys, by when they begin to sign.
    async fn server_keys(&self) -> Result<Vec<ServerKey>, StoreError>;
    /// Sealed secrets by (hook, key), strictly after `after`, at most `limit`.
    async fn sealed(&self, after: Option<(HookId, &KeyId)>, limit: usize) -> Result<Vec<SealedRow>, StoreError>;
    /// What metrics show.
    async fn totals(&self) -> Result<HookTotals, StoreError>;
}

/// Writing hooks, as part of a transaction. A tenant that is not active is [`StoreError::TenantInactive`] where a row of it would be made.
#[async_trait]
pub trait HookWrite: Send {
    /// The store's clock.
    fn now(&self) -> Timestamp;
    /// The head of a tenant's log as this transaction sees it.
    async fn head_of_log(&mut self, tenant: &TenantId) -> Result<Head, StoreError>;
    /// How many hooks, of any kind and state, the agent and its tenant have. Nobody else makes one of the tenant's until this transaction ends.
    async fn count_hooks(&mut self, tenant: &TenantId, agent: &PrincipalId) -> Result<(u64, u64), StoreError>;
    /// One hook, locked until the end of the transaction.
    async fn hook(&mut self, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, StoreError>;
    /// Stores a new hook. [`StoreError::Conflict`] when the agent is gone.
    async fn create_hook(&mut self, hook: &Hook) -> Result<(), StoreError>;
    /// Writes everything of a hook but id, tenant, agent, kind and instant of making.
    async fn save_hook(&mut self, hook: &Hook) -> Result<(), StoreError>;
    /// Removes a hook with its keys, rings and attempts.
    async fn delete_hook(&mut self, tenant: &TenantId, id: HookId) -> Result<(), StoreError>;
    /// The keys of a hook, expired ones too, newest first.
    async fn keys(&mut self, hook: HookId) -> Result<Vec<HookKey>, StoreError>;
    /// Stores a key; one of the same id of the same hook is replaced.
    async fn put_key(&mut self, hook: HookId, key: &HookKey) -> Result<(), StoreError>;
    /// Removes these keys of a hook.
    async fn remove_keys(&mut self, hook: HookId, keys: &[KeyId]) -> Result<(), StoreError>;
    /// Removes keys of any hook that expired before `now`, at most `limit`; answers how many.
    async fn purge_keys(&mut self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
    /// Outstanding rings of these hooks, by hook; those without one are left out.
    async fn outstanding(&mut self, hooks: &[HookId]) -> Result<Vec<(HookId, u64)>, StoreError>;
    /// Outstanding rings of a hook, the longest due first, at most `limit`.
    async fn deliveries(&mut self, hook: HookId, limit: usize) -> Result<Vec<Delivery>, StoreError>;
    /// One outstanding ring.
    async fn delivery(&mut self, hook: HookId, id: &WebhookId) -> Result<Option<Delivery>, StoreError>;
    /// Stores rings; one that is there (same hook and id) stays as it is, one of a hook that is gone is left out. Answers how many are new.
    async fn add_deliveries(&mut self, deliveries: &[Delivery]) -> Result<u64, StoreError>;
    /// Writes `cause`, `attempts` and `next_at` of outstanding rings; one that is gone stays gone.
    async fn save_deliveries(&mut self, deliveries: &[Delivery]) -> Result<(), StoreError>;
    /// Removes these rings of a hook.
    async fn remove_deliveries(&mut self, hook: HookId, ids: &[WebhookId]) -> Result<(), StoreError>;
    /// Removes every ring of a hook; answers how many there were.
    async fn clear_deliveries(&mut self, hook: HookId) -> Result<u64, StoreError>;
    /// Notes attempts, in order, and forgets all but the last `keep` of each hook. Those of a hook that is gone are left out.
    async fn log_attempts(&mut self, attempts: &[(HookId, AttemptRecord)], keep: usize) -> Result<(), StoreError>;
    /// Takes a group: raises its generation and answers it. Whoever took it before is fenced off.
    async fn take_group(&mut self, group: GroupNumber) -> Result<Generation, StoreError>;
    /// Moves the position of a tenant, in the group's name; `false`, and nothing is moved, when the group's generation is another by now.
    async fn advance(
        &mut self,
        tenant: &TenantId,
        group: GroupNumber,
        generation: Generation,
        position: LogPosition,
    ) -> Result<bool, StoreError>;
    /// Appends events of the server's own (`hook.disabled`) and answers their positions, in order.
    async fn append_hooks(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, StoreError>;
    /// The server's signing keys, by when they begin to sign, locked until the end of the transaction.
    async fn server_keys(&mut self) -> Result<Vec<ServerKey>, StoreError>;
    /// Stores one of the server's signing keys; one of the same id is replaced.
    async fn put_server_key(&mut self, key: &ServerKey) -> Result<(), StoreError>;
    /// Removes one of the server's signing keys.
    async fn remove_server_key(&mut self, id: &KeyId) -> Result<(), StoreError>;
    /// Replaces a sealed secret, if it still is what `was` says; `false` when not.
    async fn reseal(&mut self, was: &SealedRow, sealed: &Sealed) -> Result<bool, StoreError>;
}

/// Everything that a change of a hook touches, in one transaction.
pub trait HookTx: HookWrite + authz::AuditWrite + authz::AnswerWrite {}
impl<T: HookWrite + authz::AuditWrite + authz::AnswerWrite + ?Sized> HookTx for T {}
