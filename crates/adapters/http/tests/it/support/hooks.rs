//! Hooks in memory, and receivers that are called without a network. Rings on their way are the real stores' business: nobody sends them here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use authz::{AnswerWrite, AuditEntry, AuditWrite, IdempotentAnswer};
use bytes::Bytes;
use domain::{Clock, PrincipalId, Publication, Seq, StoreError, SystemClock, TenantId, Timestamp, Transactions, Unit};
use hooks::{
    AttemptRecord, Delivery, DueHook, DueQuery, Generation, GroupNumber, Hook, HookId, HookKey, HookKind, HookStore, HookTotals, HookTx,
    HookUrl, HookWrite, KeyId, LogPosition, OutboundAnswer, OutboundClient, OutboundError, OutboundRequest, Sealed, SealedRow, ServerKey,
    TenantHooks, UrlRefusal, WebhookId,
};
use sync::Head;

use super::Memory;

/// Everything that is stored of hooks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) hooks: BTreeMap<HookId, Hook>,
    keys: Vec<(HookId, HookKey)>,
    attempts: Vec<(HookId, AttemptRecord)>,
    server_keys: Vec<ServerKey>,
    pub(crate) audit: Vec<AuditEntry>,
    answers: Vec<(PrincipalId, String, IdempotentAnswer)>,
}

impl Rows {
    fn keys_of(&self, hook: HookId) -> Vec<HookKey> {
        self.keys.iter().rev().filter(|(of, _)| *of == hook).map(|(_, key)| key.clone()).collect()
    }
}

/// The store.
pub(crate) struct HookRows {
    log: Arc<Memory>,
    rows: Mutex<Rows>,
    writer: tokio::sync::Mutex<()>,
}

impl HookRows {
    pub(crate) fn new(log: Arc<Memory>) -> Arc<Self> {
        Arc::new(Self { log, rows: Mutex::default(), writer: tokio::sync::Mutex::default() })
    }

    /// The committed state.
    pub(crate) fn rows(&self) -> Rows {
        self.rows.lock().unwrap().clone()
    }

    /// The one hook that there is.
    pub(crate) fn only(&self) -> Hook {
        let rows = self.rows();
        assert_eq!(rows.hooks.len(), 1);
        rows.hooks.into_values().next().unwrap()
    }
}

/// Receivers, by their host: `private.example` is in a network that is not allowed, `nowhere.example` has no address, at `down.example` nobody
/// listens, and all others answer 200.
#[derive(Default)]
pub(crate) struct Receivers(Mutex<Vec<OutboundRequest>>);

impl Receivers {
    /// Hosts that were called.
    pub(crate) fn called(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|request| request.url.host().to_owned()).collect()
    }
}

#[async_trait]
impl OutboundClient for Receivers {
    async fn check(&self, url: &HookUrl) -> Result<(), UrlRefusal> {
        match url.host() {
            "private.example" => Err(UrlRefusal::Network),
            "nowhere.example" => Err(UrlRefusal::Unresolvable),
            _ if url.port() != 443 => Err(UrlRefusal::Port),
            _ => Ok(()),
        }
    }

    async fn post(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        let is_down = request.url.host() == "down.example";
        self.0.lock().unwrap().push(request);
        if is_down {
            Err(OutboundError::Connect)
        } else {
            Ok(OutboundAnswer { status: 200, retry_after: None, body: Bytes::from_static(b"{}") })
        }
    }
}

struct Tx {
    rows: Rows,
    head: Head,
    now: Timestamp,
}

#[async_trait]
impl Transactions<dyn HookTx> for HookRows {
    async fn run(&self, _name: &'static str, mut unit: Unit<dyn HookTx>) -> Result<(), StoreError> {
        let _writer = self.writer.lock().await;
        let mut tx = Tx { rows: self.rows(), head: self.log.state().head, now: SystemClock::new().now() };
        unit(&mut tx).await?;
        self.log.state().answers.clone_from(&tx.rows.answers);
        *self.rows.lock().unwrap() = tx.rows;
        Ok(())
    }
}

#[async_trait]
impl HookStore for HookRows {
    async fn hook(&self, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, StoreError> {
        Ok(self.rows().hooks.remove(&id).filter(|hook| hook.tenant == *tenant))
    }

    async fn hooks(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        kind: HookKind,
        after: Option<HookId>,
        limit: usize,
    ) -> Result<Vec<Hook>, StoreError> {
        let wanted = |hook: &Hook| {
            hook.tenant == *tenant
                && hook.kind == kind
                && agent.is_none_or(|agent| *agent == hook.agent)
                && after.is_none_or(|after| hook.id > after)
        };
        Ok(self.rows().hooks.into_values().filter(wanted).take(limit).collect())
    }

    async fn active_hooks(&self, _: &TenantId, _: &[PrincipalId]) -> Result<Vec<Hook>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn all_active_hooks(&self, _: &TenantId, _: Option<HookId>, _: usize) -> Result<Vec<Hook>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn keys(&self, hook: HookId) -> Result<Vec<HookKey>, StoreError> {
        Ok(self.rows().keys_of(hook))
    }

    async fn attempts(&self, hook: HookId, limit: usize) -> Result<Vec<AttemptRecord>, StoreError> {
        Ok(self.rows().attempts.into_iter().rev().filter(|(of, _)| *of == hook).map(|(_, attempt)| attempt).take(limit).collect())
    }

    async fn due(&self, _: DueQuery<'_>) -> Result<Vec<DueHook>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn next_due(&self, _: &[GroupNumber]) -> Result<Option<Timestamp>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn tenants(&self, _: &[GroupNumber], _: Option<&TenantId>, _: usize) -> Result<Vec<TenantHooks>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn groups(&self) -> Result<Vec<GroupNumber>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn server_keys(&self) -> Result<Vec<ServerKey>, StoreError> {
        Ok(self.rows().server_keys)
    }

    async fn sealed(&self, _: Option<(HookId, &KeyId)>, _: usize) -> Result<Vec<SealedRow>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn totals(&self) -> Result<HookTotals, StoreError> {
        Err(StoreError::Unavailable)
    }
}

#[async_trait]
impl AuditWrite for Tx {
    async fn audit(&mut self, _: &TenantId, entry: &AuditEntry) -> Result<(), StoreError> {
        self.rows.audit.push(entry.clone());
        Ok(())
    }
}

#[async_trait]
impl AnswerWrite for Tx {
    async fn store_answer(
        &mut self,
        _: &TenantId,
        principal: &PrincipalId,
        key: &str,
        answer: &IdempotentAnswer,
        _: Timestamp,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        if self.rows.answers.iter().any(|(of, taken, _)| of == principal && taken == key) {
            return Err(StoreError::Conflict("key"));
        }
        self.rows.answers.push((principal.clone(), key.to_owned(), answer.clone()));
        Ok(())
    }
}

#[async_trait]
impl HookWrite for Tx {
    fn now(&self) -> Timestamp {
        self.now
    }

    async fn head_of_log(&mut self, _: &TenantId) -> Result<Head, StoreError> {
        Ok(self.head)
    }

    async fn count_hooks(&mut self, _: &TenantId, agent: &PrincipalId) -> Result<(u64, u64), StoreError> {
        let of_agent = self.rows.hooks.values().filter(|hook| hook.agent == *agent).count();
        Ok((of_agent as u64, self.rows.hooks.len() as u64))
    }

    async fn hook(&mut self, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, StoreError> {
        Ok(self.rows.hooks.get(&id).filter(|hook| hook.tenant == *tenant).cloned())
    }

    async fn create_hook(&mut self, hook: &Hook) -> Result<(), StoreError> {
        self.rows.hooks.insert(hook.id, hook.clone());
        Ok(())
    }

    async fn save_hook(&mut self, hook: &Hook) -> Result<(), StoreError> {
        self.rows.hooks.insert(hook.id, hook.clone());
        Ok(())
    }

    async fn delete_hook(&mut self, _: &TenantId, id: HookId) -> Result<(), StoreError> {
        self.rows.hooks.remove(&id);
        self.rows.keys.retain(|(of, _)| *of != id);
        self.rows.attempts.retain(|(of, _)| *of != id);
        Ok(())
    }

    async fn keys(&mut self, hook: HookId) -> Result<Vec<HookKey>, StoreError> {
        Ok(self.rows.keys_of(hook))
    }

    async fn put_key(&mut self, hook: HookId, key: &HookKey) -> Result<(), StoreError> {
        match self.rows.keys.iter_mut().find(|(of, stored)| *of == hook && stored.id == key.id) {
            Some((_, stored)) => stored.clone_from(key),
            None => self.rows.keys.push((hook, key.clone())),
        }
        Ok(())
    }

    async fn remove_keys(&mut self, hook: HookId, keys: &[KeyId]) -> Result<(), StoreError> {
        self.rows.keys.retain(|(of, key)| *of != hook || !keys.contains(&key.id));
        Ok(())
    }

    async fn purge_keys(&mut self, _: Timestamp, _: usize) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn outstanding(&mut self, _: &[HookId]) -> Result<Vec<(HookId, u64)>, StoreError> {
        Ok(Vec::new())
    }

    async fn deliveries(&mut self, _: HookId, _: usize) -> Result<Vec<Delivery>, StoreError> {
        Ok(Vec::new())
    }

    async fn delivery(&mut self, _: HookId, _: &WebhookId) -> Result<Option<Delivery>, StoreError> {
        Ok(None)
    }

    async fn add_deliveries(&mut self, deliveries: &[Delivery]) -> Result<u64, StoreError> {
        Ok(deliveries.len() as u64)
    }

    async fn save_deliveries(&mut self, _: &[Delivery]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn remove_deliveries(&mut self, _: HookId, _: &[WebhookId]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn clear_deliveries(&mut self, _: HookId) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn log_attempts(&mut self, attempts: &[(HookId, AttemptRecord)], _: usize) -> Result<(), StoreError> {
        self.rows.attempts.extend_from_slice(attempts);
        Ok(())
    }

    async fn take_group(&mut self, _: GroupNumber) -> Result<Generation, StoreError> {
        Ok(Generation(1))
    }

    async fn advance(&mut self, _: &TenantId, _: GroupNumber, _: Generation, _: LogPosition) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn append_hooks(&mut self, _: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, StoreError> {
        Ok(vec![self.head.seq; publications.len()])
    }

    async fn server_keys(&mut self) -> Result<Vec<ServerKey>, StoreError> {
        Ok(self.rows.server_keys.clone())
    }

    async fn put_server_key(&mut self, key: &ServerKey) -> Result<(), StoreError> {
        self.rows.server_keys.retain(|other| other.id != key.id);
        self.rows.server_keys.push(key.clone());
        self.rows.server_keys.sort_by_key(|key| key.signs_from);
        Ok(())
    }

    async fn remove_server_key(&mut self, id: &KeyId) -> Result<(), StoreError> {
        self.rows.server_keys.retain(|key| key.id != *id);
        Ok(())
    }

    async fn reseal(&mut self, _: &SealedRow, _: &Sealed) -> Result<bool, StoreError> {
        Ok(false)
    }
}
