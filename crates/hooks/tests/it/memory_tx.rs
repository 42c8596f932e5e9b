//! A transaction of the store in memory: a copy of the state.

use async_trait::async_trait;
use authz::{AnswerWrite, AuditEntry, AuditWrite, IdempotentAnswer};
use domain::{PrincipalId, Publication, Seq, StoreError, TenantId, Timestamp};
use hooks::{
    AttemptRecord, Delivery, Generation, GroupNumber, Hook, HookId, HookKey, HookWrite, KeyId, KeyMaterial, LogPosition, Sealed, SealedRow,
    ServerKey, WebhookId,
};
use sync::Head;

use crate::memory::{State, generation};

pub(crate) struct Tx {
    pub(crate) state: State,
    pub(crate) now: Timestamp,
}

#[async_trait]
impl AuditWrite for Tx {
    async fn audit(&mut self, _: &TenantId, entry: &AuditEntry) -> Result<(), StoreError> {
        self.state.audit.push(entry.clone());
        Ok(())
    }
}

#[async_trait]
impl AnswerWrite for Tx {
    async fn store_answer(
        &mut self,
        _: &TenantId,
        _: &PrincipalId,
        key: &str,
        answer: &IdempotentAnswer,
        _: Timestamp,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        match self.state.answers.insert(key.to_owned(), answer.clone()) {
            None => Ok(()),
            Some(_) => Err(StoreError::Conflict("the key is taken")),
        }
    }
}

#[async_trait]
impl HookWrite for Tx {
    fn now(&self) -> Timestamp {
        self.now
    }

    async fn head_of_log(&mut self, tenant: &TenantId) -> Result<Head, StoreError> {
        Ok(self.state.log(tenant).head())
    }

    async fn count_hooks(&mut self, tenant: &TenantId, agent: &PrincipalId) -> Result<(u64, u64), StoreError> {
        let of_tenant: Vec<_> = self.state.hooks.values().filter(|hook| hook.tenant == *tenant).collect();
        Ok((of_tenant.iter().filter(|hook| hook.agent == *agent).count() as u64, of_tenant.len() as u64))
    }

    async fn hook(&mut self, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, StoreError> {
        Ok(self.state.hooks.get(&id).filter(|hook| hook.tenant == *tenant).cloned())
    }

    async fn create_hook(&mut self, hook: &Hook) -> Result<(), StoreError> {
        match self.state.hooks.insert(hook.id, hook.clone()) {
            None => Ok(()),
            Some(_) => Err(StoreError::Conflict("the hook exists")),
        }
    }

    async fn save_hook(&mut self, hook: &Hook) -> Result<(), StoreError> {
        if let Some(stored) = self.state.hooks.get_mut(&hook.id) {
            assert_eq!((&stored.tenant, &stored.agent, stored.kind), (&hook.tenant, &hook.agent, hook.kind), "fixed");
            *stored = hook.clone();
        }
        Ok(())
    }

    async fn delete_hook(&mut self, tenant: &TenantId, id: HookId) -> Result<(), StoreError> {
        if self.state.hooks.get(&id).is_some_and(|hook| hook.tenant == *tenant) {
            self.state.hooks.remove(&id);
            self.state.keys.retain(|(hook, _), _| *hook != id);
            self.state.deliveries.retain(|(hook, _), _| *hook != id);
            self.state.attempts.remove(&id);
        }
        Ok(())
    }

    async fn keys(&mut self, hook: HookId) -> Result<Vec<HookKey>, StoreError> {
        Ok(self.state.keys_of(hook))
    }

    async fn put_key(&mut self, hook: HookId, key: &HookKey) -> Result<(), StoreError> {
        self.state.keys.insert((hook, key.id.clone()), key.clone());
        Ok(())
    }

    async fn remove_keys(&mut self, hook: HookId, keys: &[KeyId]) -> Result<(), StoreError> {
        self.state.keys.retain(|(of, key), _| *of != hook || !keys.contains(key));
        Ok(())
    }

    async fn purge_keys(&mut self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let expired: Vec<_> = self.state.keys.iter().filter(|(_, key)| !key.is_valid(now)).map(|(id, _)| id.clone()).take(limit).collect();
        for id in &expired {
            self.state.keys.remove(id);
        }
        Ok(expired.len() as u64)
    }

    async fn outstanding(&mut self, hooks: &[HookId]) -> Result<Vec<(HookId, u64)>, StoreError> {
        let count = |hook: &HookId| (*hook, self.state.deliveries_of(*hook).len() as u64);
        Ok(hooks.iter().map(count).filter(|(_, count)| *count > 0).collect())
    }

    async fn deliveries(&mut self, hook: HookId, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        Ok(self.state.deliveries_of(hook).into_iter().take(limit).collect())
    }

    async fn delivery(&mut self, hook: HookId, id: &WebhookId) -> Result<Option<Delivery>, StoreError> {
        Ok(self.state.deliveries.get(&(hook, id.clone())).cloned())
    }

    async fn add_deliveries(&mut self, deliveries: &[Delivery]) -> Result<u64, StoreError> {
        let mut count = 0;
        for ring in deliveries {
            let key = (ring.hook, ring.id.clone());
            if self.state.hooks.contains_key(&ring.hook) && !self.state.deliveries.contains_key(&key) {
                self.state.deliveries.insert(key, ring.clone());
                count += 1;
            }
        }
        Ok(count)
    }

    async fn save_deliveries(&mut self, deliveries: &[Delivery]) -> Result<(), StoreError> {
        for ring in deliveries {
            if let Some(stored) = self.state.deliveries.get_mut(&(ring.hook, ring.id.clone())) {
                (stored.cause, stored.attempts, stored.next_at) = (ring.cause, ring.attempts, ring.next_at);
            }
        }
        Ok(())
    }

    async fn remove_deliveries(&mut self, hook: HookId, ids: &[WebhookId]) -> Result<(), StoreError> {
        self.state.deliveries.retain(|(of, id), _| *of != hook || !ids.contains(id));
        Ok(())
    }

    async fn clear_deliveries(&mut self, hook: HookId) -> Result<u64, StoreError> {
        let before = self.state.deliveries.len();
        self.state.deliveries.retain(|(of, _), _| *of != hook);
        Ok((before - self.state.deliveries.len()) as u64)
    }

    async fn log_attempts(&mut self, attempts: &[(HookId, AttemptRecord)], keep: usize) -> Result<(), StoreError> {
        for (hook, attempt) in attempts.iter().filter(|(hook, _)| self.state.hooks.contains_key(hook)) {
            let log = self.state.attempts.entry(*hook).or_default();
            log.push(attempt.clone());
            log.drain(..log.len().saturating_sub(keep));
        }
        Ok(())
    }

    async fn take_group(&mut self, _: GroupNumber) -> Result<Generation, StoreError> {
        self.state.generation += 1;
        Ok(generation(&self.state))
    }

    async fn advance(&mut self, tenant: &TenantId, _: GroupNumber, mine: Generation, position: LogPosition) -> Result<bool, StoreError> {
        let is_mine = mine == generation(&self.state);
        if is_mine {
            self.state.positions.insert(tenant.clone(), position);
        }
        Ok(is_mine)
    }

    async fn append_hooks(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, StoreError> {
        Ok(self.state.append(tenant, publications))
    }

    async fn server_keys(&mut self) -> Result<Vec<ServerKey>, StoreError> {
        Ok(self.state.server_keys.clone())
    }

    async fn put_server_key(&mut self, key: &ServerKey) -> Result<(), StoreError> {
        self.state.server_keys.retain(|other| other.id != key.id);
        self.state.server_keys.push(key.clone());
        self.state.server_keys.sort_by_key(|key| key.signs_from);
        Ok(())
    }

    async fn remove_server_key(&mut self, id: &KeyId) -> Result<(), StoreError> {
        self.state.server_keys.retain(|key| key.id != *id);
        Ok(())
    }

    async fn reseal(&mut self, was: &SealedRow, sealed: &Sealed) -> Result<bool, StoreError> {
        let Some(key) = self.state.keys.get_mut(&(was.hook, was.key.clone())) else { return Ok(false) };
        let is_same = key.material == KeyMaterial::Secret(was.secret.clone());
        if is_same {
            key.material = KeyMaterial::Secret(sealed.clone());
        }
        Ok(is_same)
    }
}
