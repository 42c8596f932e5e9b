//! The reading port of `hooks`.

use async_trait::async_trait;
use domain::{PrincipalId, StoreError, TenantId, Timestamp};
use hooks::{
    AttemptRecord, DueHook, DueQuery, GroupNumber, Hook, HookId, HookKey, HookKind, HookState, HookStore, HookTotals, KeyId, SealedRow,
    ServerKey, TenantHooks,
};

use super::registrations::{self, Whose};
use super::{attempts, dispatch, due, keys, server_keys};
use crate::failure::Failure;
use crate::store::PostgresStore;

impl PostgresStore {
    async fn list_hooks(
        &self,
        tenant: &TenantId,
        whose: Whose,
        after: Option<HookId>,
        limit: usize,
        wanted: impl Fn(&Hook) -> bool,
    ) -> Result<Vec<Hook>, Failure> {
        let mut connection = self.reader().await?;
        registrations::list(&mut connection, self.metrics(), tenant, &whose, after, limit, wanted).await
    }

    async fn due_hooks(&self, query: &DueQuery<'_>) -> Result<Vec<DueHook>, Failure> {
        let mut tx = self.snapshot().await?;
        due::due(tx.connection(), self.metrics(), query).await
    }
}

fn is_active(hook: &Hook) -> bool {
    hook.state == HookState::Active
}

#[async_trait]
impl HookStore for PostgresStore {
    async fn hook(&self, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, StoreError> {
        let mut connection = self.reader().await?;
        Ok(registrations::find(&mut connection, self.metrics(), tenant, id).await?)
    }

    async fn hooks(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        kind: HookKind,
        after: Option<HookId>,
        limit: usize,
    ) -> Result<Vec<Hook>, StoreError> {
        let whose = agent.map_or(Whose::Everybodys, |agent| Whose::Of(vec![agent.clone()]));
        Ok(self.list_hooks(tenant, whose, after, limit, |hook| hook.kind == kind).await?)
    }

    async fn active_hooks(&self, tenant: &TenantId, agents: &[PrincipalId]) -> Result<Vec<Hook>, StoreError> {
        Ok(self.list_hooks(tenant, Whose::Of(agents.to_vec()), None, usize::MAX, is_active).await?)
    }

    async fn all_active_hooks(&self, tenant: &TenantId, after: Option<HookId>, limit: usize) -> Result<Vec<Hook>, StoreError> {
        Ok(self.list_hooks(tenant, Whose::Everybodys, after, limit, is_active).await?)
    }

    async fn keys(&self, hook: HookId) -> Result<Vec<HookKey>, StoreError> {
        let mut connection = self.reader().await?;
        Ok(keys::keys(&mut connection, self.metrics(), hook).await?)
    }

    async fn attempts(&self, hook: HookId, limit: usize) -> Result<Vec<AttemptRecord>, StoreError> {
        let mut connection = self.reader().await?;
        Ok(attempts::last(&mut connection, self.metrics(), hook, limit).await?)
    }

    async fn due(&self, query: DueQuery<'_>) -> Result<Vec<DueHook>, StoreError> {
        Ok(self.due_hooks(&query).await?)
    }

    async fn next_due(&self, groups: &[GroupNumber]) -> Result<Option<Timestamp>, StoreError> {
        let mut connection = self.reader().await?;
        Ok(due::next_due(&mut connection, groups).await?)
    }

    async fn tenants(&self, groups: &[GroupNumber], after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantHooks>, StoreError> {
        let mut connection = self.reader().await?;
        Ok(dispatch::tenants(&mut connection, self.metrics(), groups, after, limit).await?)
    }

    async fn groups(&self) -> Result<Vec<GroupNumber>, StoreError> {
        let mut connection = self.reader().await?;
        Ok(dispatch::groups(&mut connection).await?)
    }

    async fn server_keys(&self) -> Result<Vec<ServerKey>, StoreError> {
        let mut connection = self.reader().await?;
        Ok(server_keys::list(&mut connection, self.metrics()).await?)
    }

    async fn sealed(&self, after: Option<(HookId, &KeyId)>, limit: usize) -> Result<Vec<SealedRow>, StoreError> {
        let mut connection = self.reader().await?;
        Ok(keys::sealed(&mut connection, self.metrics(), after, limit).await?)
    }

    async fn totals(&self) -> Result<HookTotals, StoreError> {
        let mut connection = self.reader().await?;
        Ok(registrations::totals(&mut connection).await?)
    }
}
