//! The writing port of `hooks`.

use async_trait::async_trait;
use domain::{Appended, PrincipalId, Publication, Seq, StoreError, TenantId, Timestamp};
use hooks::{
    AttemptRecord, Delivery, Generation, GroupNumber, Hook, HookId, HookKey, HookWrite, KeyId, LogPosition, Sealed, SealedRow, ServerKey,
    WebhookId,
};
use sync::Head;

use super::{attempts, deliveries, dispatch, keys, registrations, server_keys};
use crate::failure::Failure;
use crate::store::transactions;
use crate::tx::WriteTx;

transactions!(dyn hooks::HookTx);

async fn append(tx: &mut WriteTx, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, Failure> {
    let appended = tx.append(tenant, publications).await?;
    let seqs = appended.iter().map(|answer| match answer {
        Appended::New { seq, .. } => Ok(*seq),
        _ => Err(Failure::Store(StoreError::Conflict("an event about a hook is not new"))),
    });
    seqs.collect()
}

#[async_trait]
impl HookWrite for WriteTx {
    fn now(&self) -> Timestamp {
        WriteTx::now(self)
    }

    async fn head_of_log(&mut self, tenant: &TenantId) -> Result<Head, StoreError> {
        Ok(WriteTx::log_head(self, tenant).await?.into())
    }

    async fn count_hooks(&mut self, tenant: &TenantId, agent: &PrincipalId) -> Result<(u64, u64), StoreError> {
        Ok(registrations::count(self, tenant, agent).await?)
    }

    async fn hook(&mut self, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, StoreError> {
        Ok(registrations::lock(self, tenant, id).await?)
    }

    async fn create_hook(&mut self, hook: &Hook) -> Result<(), StoreError> {
        Ok(registrations::create(self, hook).await?)
    }

    async fn save_hook(&mut self, hook: &Hook) -> Result<(), StoreError> {
        Ok(registrations::save(self, hook).await?)
    }

    async fn delete_hook(&mut self, tenant: &TenantId, id: HookId) -> Result<(), StoreError> {
        Ok(registrations::delete(self, tenant, id).await?)
    }

    async fn keys(&mut self, hook: HookId) -> Result<Vec<HookKey>, StoreError> {
        Ok(keys::keys_in(self, hook).await?)
    }

    async fn put_key(&mut self, hook: HookId, key: &HookKey) -> Result<(), StoreError> {
        Ok(keys::put(self, hook, key).await?)
    }

    async fn remove_keys(&mut self, hook: HookId, keys: &[KeyId]) -> Result<(), StoreError> {
        Ok(keys::remove(self, hook, keys).await?)
    }

    async fn purge_keys(&mut self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        Ok(keys::purge(self, now, limit).await?)
    }

    async fn outstanding(&mut self, hooks: &[HookId]) -> Result<Vec<(HookId, u64)>, StoreError> {
        Ok(deliveries::counts(self, hooks).await?)
    }

    async fn deliveries(&mut self, hook: HookId, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        Ok(deliveries::outstanding(self, hook, limit).await?)
    }

    async fn delivery(&mut self, hook: HookId, id: &WebhookId) -> Result<Option<Delivery>, StoreError> {
        Ok(deliveries::find(self, hook, id).await?)
    }

    async fn add_deliveries(&mut self, deliveries: &[Delivery]) -> Result<u64, StoreError> {
        Ok(deliveries::add(self, deliveries).await?)
    }

    async fn save_deliveries(&mut self, deliveries: &[Delivery]) -> Result<(), StoreError> {
        Ok(deliveries::save(self, deliveries).await?)
    }

    async fn remove_deliveries(&mut self, hook: HookId, ids: &[WebhookId]) -> Result<(), StoreError> {
        Ok(deliveries::remove(self, hook, ids).await?)
    }

    async fn clear_deliveries(&mut self, hook: HookId) -> Result<u64, StoreError> {
        Ok(deliveries::clear(self, hook).await?)
    }

    async fn log_attempts(&mut self, attempts: &[(HookId, AttemptRecord)], keep: usize) -> Result<(), StoreError> {
        Ok(attempts::log(self, attempts, keep).await?)
    }

    async fn take_group(&mut self, group: GroupNumber) -> Result<Generation, StoreError> {
        Ok(dispatch::take(self, group).await?)
    }

    async fn advance(
        &mut self,
        tenant: &TenantId,
        group: GroupNumber,
        generation: Generation,
        position: LogPosition,
    ) -> Result<bool, StoreError> {
        Ok(dispatch::advance(self, tenant, group, generation, position).await?)
    }

    async fn append_hooks(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, StoreError> {
        Ok(append(self, tenant, publications).await?)
    }

    async fn server_keys(&mut self) -> Result<Vec<ServerKey>, StoreError> {
        Ok(server_keys::lock(self).await?)
    }

    async fn put_server_key(&mut self, key: &ServerKey) -> Result<(), StoreError> {
        Ok(server_keys::put(self, key).await?)
    }

    async fn remove_server_key(&mut self, id: &KeyId) -> Result<(), StoreError> {
        Ok(server_keys::remove(self, id).await?)
    }

    async fn reseal(&mut self, was: &SealedRow, sealed: &Sealed) -> Result<bool, StoreError> {
        Ok(keys::reseal(self, was, sealed).await?)
    }
}
