//! The ports of a transaction. Each method is ready at once: the work is synchronous, the signatures are every store's.

use async_trait::async_trait;
use authz::{
    AccessLogWrite, AnswerWrite, AuditEntry, AuditWrite, Channel, Grant, IdempotentAnswer, IdentityWrite, Principal, PrincipalKind,
    Resource, Space, Tenant, TenantState, TokenRecord,
};
use domain::{
    Appended, ChannelId, ChannelRef, EventId, GrantId, PrincipalId, Publication, Seq, SpaceId, StoreError, TenantId, Timestamp, TokenId,
};
use intake::{Schedule, ScheduleWrite, Scheduled};
use sync::{Head, LogWrite};

use super::WriteTx;
use crate::{identity, log, schedule};

#[async_trait]
impl LogWrite for WriteTx {
    async fn append(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, StoreError> {
        Ok(log::append(self, tenant, publications)?)
    }

    async fn log_head(&mut self, tenant: &TenantId) -> Result<Head, StoreError> {
        Ok(WriteTx::log_head(self, tenant)?.into())
    }
}

#[async_trait]
impl AccessLogWrite for WriteTx {
    async fn append_access(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, StoreError> {
        Ok(log::append(self, tenant, publications)?)
    }

    async fn head(&mut self, tenant: &TenantId) -> Result<Seq, StoreError> {
        Ok(WriteTx::log_head(self, tenant)?.seq)
    }
}

#[async_trait]
impl AuditWrite for WriteTx {
    async fn audit(&mut self, tenant: &TenantId, entry: &AuditEntry) -> Result<(), StoreError> {
        Ok(identity::add_audit(self, tenant, entry)?)
    }
}

#[async_trait]
impl ScheduleWrite for WriteTx {
    async fn schedule(&mut self, tenant: &TenantId, schedule: &Schedule) -> Result<Option<Appended>, StoreError> {
        Ok(schedule::schedule(self, tenant, schedule)?)
    }

    async fn cancel(&mut self, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, StoreError> {
        Ok(schedule::cancel(self, tenant, id)?)
    }

    async fn promote(&mut self, tenant: &TenantId, id: EventId) -> Result<Option<Schedule>, StoreError> {
        Ok(schedule::promote(self, tenant, id)?)
    }

    async fn fail(&mut self, tenant: &TenantId, id: EventId, failure: &str) -> Result<bool, StoreError> {
        Ok(schedule::fail(self, tenant, id, failure)?)
    }

    async fn has_agent(&mut self, tenant: &TenantId, agent: &PrincipalId) -> Result<bool, StoreError> {
        let found = identity::principal(self.connection(), tenant, agent)?;
        Ok(found.is_some_and(|principal| principal.enabled && principal.kind == PrincipalKind::Agent))
    }

    async fn has_channel(&mut self, tenant: &TenantId, channel: &ChannelRef) -> Result<bool, StoreError> {
        Ok(identity::channel_exists(self.connection(), tenant, channel)?)
    }
}

#[async_trait]
impl IdentityWrite for WriteTx {
    async fn principal(&mut self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        Ok(identity::principal(self.connection(), tenant, id)?)
    }

    async fn owners(&mut self, tenant: &TenantId) -> Result<u64, StoreError> {
        Ok(identity::owners(self, tenant)?)
    }

    async fn create_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        Ok(identity::create_tenant(self, tenant)?)
    }

    async fn set_tenant_state(&mut self, tenant: &TenantId, state: TenantState) -> Result<bool, StoreError> {
        Ok(identity::set_tenant_state(self, tenant, state)?)
    }

    async fn create_principal(&mut self, tenant: &TenantId, principal: &Principal) -> Result<(), StoreError> {
        Ok(identity::create_principal(self, tenant, principal)?)
    }

    async fn update_principal(&mut self, tenant: &TenantId, principal: &Principal) -> Result<bool, StoreError> {
        Ok(identity::update_principal(self, tenant, principal)?)
    }

    async fn delete_principal(&mut self, tenant: &TenantId, id: &PrincipalId) -> Result<bool, StoreError> {
        Ok(identity::delete_principal(self, tenant, id)?)
    }

    async fn live_tokens(&mut self, tenant: &TenantId, principal: &PrincipalId, now: Timestamp) -> Result<u64, StoreError> {
        Ok(identity::live_tokens(self, tenant, principal, now)?)
    }

    async fn create_token(&mut self, tenant: &TenantId, token: &TokenRecord) -> Result<(), StoreError> {
        Ok(identity::create_token(self, tenant, token)?)
    }

    async fn revoke_token(&mut self, tenant: &TenantId, principal: &PrincipalId, id: TokenId, at: Timestamp) -> Result<bool, StoreError> {
        Ok(identity::revoke_token(self, tenant, principal, id, at)?)
    }

    async fn revoke_tokens(&mut self, tenant: &TenantId, principal: &PrincipalId, at: Timestamp) -> Result<Vec<TokenId>, StoreError> {
        Ok(identity::revoke_tokens(self, tenant, principal, at)?)
    }

    async fn create_space(&mut self, tenant: &TenantId, space: &Space) -> Result<(), StoreError> {
        Ok(identity::create_space(self, tenant, space)?)
    }

    async fn delete_space(&mut self, tenant: &TenantId, space: &SpaceId) -> Result<Option<Vec<Grant>>, StoreError> {
        Ok(identity::delete_space(self, tenant, space)?)
    }

    async fn create_channel(&mut self, tenant: &TenantId, channel: &Channel) -> Result<bool, StoreError> {
        Ok(identity::create_channel(self, tenant, channel)?)
    }

    async fn delete_channel(&mut self, tenant: &TenantId, space: &SpaceId, channel: &ChannelId) -> Result<Option<Vec<Grant>>, StoreError> {
        Ok(identity::delete_channel(self, tenant, space, channel)?)
    }

    async fn resource_exists(&mut self, tenant: &TenantId, resource: &Resource) -> Result<bool, StoreError> {
        Ok(identity::resource_exists(self, tenant, resource)?)
    }

    async fn create_grant(&mut self, tenant: &TenantId, grant: &Grant) -> Result<Option<Grant>, StoreError> {
        Ok(identity::create_grant(self, tenant, grant)?)
    }

    async fn delete_grant(&mut self, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, StoreError> {
        Ok(identity::delete_grant(self, tenant, id)?)
    }

    async fn grant(&mut self, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, StoreError> {
        Ok(identity::grant(self, tenant, id)?)
    }
}

#[async_trait]
impl AnswerWrite for WriteTx {
    async fn store_answer(
        &mut self,
        tenant: &TenantId,
        principal: &PrincipalId,
        key: &str,
        answer: &IdempotentAnswer,
        now: Timestamp,
        not_before: Timestamp,
    ) -> Result<(), StoreError> {
        Ok(identity::store_answer(self, tenant, principal, key, answer, now, not_before)?)
    }
}
