//! The reading port of `hooks`.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::{PrincipalId, StoreError, TenantId, Timestamp};
use hooks::{
    AttemptRecord, DueHook, DueQuery, GroupNumber, Hook, HookId, HookKey, HookKind, HookState, HookStore, HookTotals, KeyId, SealedRow,
    ServerKey, TenantHooks,
};

use super::due::{self, Question};
use super::{attempts, dispatch, keys, registrations, server_keys};
use crate::failure::Failure;
use crate::readers::ReadTx;
use crate::store::SqliteStore;

fn is_active(hook: &Hook) -> bool {
    hook.state == HookState::Active
}

/// The active hooks of these agents, each agent asked for once.
fn active_hooks(tx: &ReadTx, tenant: &TenantId, agents: &BTreeSet<PrincipalId>) -> Result<Vec<Hook>, Failure> {
    let mut hooks = Vec::new();
    for agent in agents {
        hooks.extend(registrations::list(tx, tenant, Some(agent), None, usize::MAX, is_active)?);
    }
    Ok(hooks)
}

#[async_trait]
impl HookStore for SqliteStore {
    async fn hook(&self, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |tx| registrations::find(tx.connection(), tx.metrics(), &tenant, id)).await
    }

    async fn hooks(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        kind: HookKind,
        after: Option<HookId>,
        limit: usize,
    ) -> Result<Vec<Hook>, StoreError> {
        let (tenant, agent) = (tenant.clone(), agent.cloned());
        self.read(move |tx| registrations::list(tx, &tenant, agent.as_ref(), after, limit, |hook| hook.kind == kind)).await
    }

    async fn active_hooks(&self, tenant: &TenantId, agents: &[PrincipalId]) -> Result<Vec<Hook>, StoreError> {
        let (tenant, agents) = (tenant.clone(), agents.iter().cloned().collect());
        self.read(move |tx| active_hooks(tx, &tenant, &agents)).await
    }

    async fn all_active_hooks(&self, tenant: &TenantId, after: Option<HookId>, limit: usize) -> Result<Vec<Hook>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |tx| registrations::list(tx, &tenant, None, after, limit, is_active)).await
    }

    async fn keys(&self, hook: HookId) -> Result<Vec<HookKey>, StoreError> {
        self.read(move |tx| keys::keys(tx.connection(), tx.metrics(), hook)).await
    }

    async fn attempts(&self, hook: HookId, limit: usize) -> Result<Vec<AttemptRecord>, StoreError> {
        self.read(move |tx| attempts::last(tx, hook, limit)).await
    }

    async fn due(&self, query: DueQuery<'_>) -> Result<Vec<DueHook>, StoreError> {
        let question = Question::from(query);
        self.read(move |tx| due::due(tx, &question)).await
    }

    async fn next_due(&self, groups: &[GroupNumber]) -> Result<Option<Timestamp>, StoreError> {
        let groups = groups.to_vec();
        self.read(move |tx| due::next_due(tx, &groups)).await
    }

    async fn tenants(&self, groups: &[GroupNumber], after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantHooks>, StoreError> {
        let (groups, after) = (groups.to_vec(), after.cloned());
        self.read(move |tx| dispatch::tenants(tx, &groups, after.as_ref(), limit)).await
    }

    async fn groups(&self) -> Result<Vec<GroupNumber>, StoreError> {
        self.read(|tx| dispatch::groups(tx)).await
    }

    async fn server_keys(&self) -> Result<Vec<ServerKey>, StoreError> {
        self.read(|tx| server_keys::list(tx.connection(), tx.metrics())).await
    }

    async fn sealed(&self, after: Option<(HookId, &KeyId)>, limit: usize) -> Result<Vec<SealedRow>, StoreError> {
        let after = after.map(|(hook, key)| (hook, key.clone()));
        self.read(move |tx| keys::sealed(tx, after, limit)).await
    }

    async fn totals(&self) -> Result<HookTotals, StoreError> {
        self.read(|tx| registrations::totals(tx)).await
    }
}
