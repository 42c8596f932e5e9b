//! The store in memory: one tenant, its log, its identities, its cursors; with faults and a record of what was called.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use agents::{ConsumerKey, ConsumerStatus, CursorRow, CursorStore, Holder, RestWindow, Save, SaveOutcome, Take, Taken, WindowWrite};
use async_trait::async_trait;
use authz::{
    AuditEntry, AuditFilter, Channel, Credential, Grant, IdempotentAnswer, IdentityStore, Keyset, Permission, Principal, Resource, Rights,
    Space, Tenant, TenantState, TokenHash, TokenRecord, TokenUse,
};
use domain::{ChannelRef, Clock, ConsumerName, Event, PrincipalId, Seq, SessionId, SpaceId, StoreError, SyncEpoch, TenantId, Timestamp};
use sync::{Head, LogStore, Page, PageRange, Retired};
use tokio::sync::Semaphore;
use uuid::Uuid;

/// A call that changed cursors, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A take, with the new holder.
    Take(Holder),
    /// A save of one session: its holder and what it saved, if anything.
    Save(Holder, Option<u64>),
    /// A restart at this position.
    Restart(u64),
    /// A window was stored.
    Window,
}

pub(crate) struct State {
    pub(crate) serves: TenantState,
    pub(crate) head: Head,
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) principals: Vec<Principal>,
    pub(crate) tokens: Vec<TokenRecord>,
    pub(crate) grants: Vec<(PrincipalId, Resource, Permission)>,
    pub(crate) rows: BTreeMap<ConsumerKey, CursorRow>,
    pub(crate) calls: Vec<Call>,
    pub(crate) denials: Vec<AuditEntry>,
    /// Every read of a page answers this.
    pub(crate) broken_pages: Option<StoreError>,
    /// Every save answers this.
    pub(crate) broken_saves: Option<StoreError>,
    pub(crate) pages_read: usize,
}

pub(crate) struct Memory {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    tenant: TenantId,
    /// One permit is needed per take, page and save; tests take them away to hold the store up.
    pub(crate) gate: Semaphore,
}

impl Memory {
    pub(crate) fn new(tenant: TenantId, clock: Arc<dyn Clock>) -> Arc<Self> {
        let head = Head { seq: Seq::ZERO, floor: Seq::new(1).unwrap(), epoch: SyncEpoch::new(Uuid::from_u128(0xe1)) };
        let state = State {
            serves: TenantState::Active,
            head,
            events: Vec::new(),
            principals: Vec::new(),
            tokens: Vec::new(),
            grants: Vec::new(),
            rows: BTreeMap::new(),
            calls: Vec::new(),
            denials: Vec::new(),
            broken_pages: None,
            broken_saves: None,
            pages_read: 0,
        };
        Arc::new(Self { state: Mutex::new(state), clock, tenant, gate: Semaphore::new(Semaphore::MAX_PERMITS) })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn acked(&self, key: &ConsumerKey) -> Option<u64> {
        self.state().rows.get(key).map(|row| row.acked.get())
    }

    pub(crate) fn holder(&self, key: &ConsumerKey) -> Option<Holder> {
        self.state().rows.get(key).and_then(|row| row.holder)
    }

    pub(crate) fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.state().calls)
    }

    /// Another process takes the consumer.
    pub(crate) fn steal(&self, key: &ConsumerKey) -> Holder {
        let thief = Holder::Gateway(SessionId::new(Uuid::from_u128(0x7417)));
        let mut state = self.state();
        let row = state.rows.get_mut(key).unwrap();
        row.holder = Some(thief);
        row.window_version += 1;
        thief
    }

    async fn pass(&self) {
        drop(self.gate.acquire().await.unwrap());
    }
}

#[async_trait]
impl LogStore for Memory {
    async fn head(&self, tenant: &TenantId) -> Result<Option<Head>, StoreError> {
        self.pass().await;
        Ok((*tenant == self.tenant).then(|| self.state().head))
    }

    async fn heads(&self, tenants: &[TenantId]) -> Result<Vec<(TenantId, Head)>, StoreError> {
        let head = self.state().head;
        Ok(tenants.iter().filter(|tenant| **tenant == self.tenant).map(|tenant| (tenant.clone(), head)).collect())
    }

    async fn page(&self, _tenant: &TenantId, range: PageRange) -> Result<Page, StoreError> {
        self.pass().await;
        let mut state = self.state();
        state.pages_read += 1;
        if let Some(error) = &state.broken_pages {
            return Err(error.clone());
        }
        let up_to = range.up_to.unwrap_or(state.head.seq);
        let first = range.after.next().max(state.head.floor);
        let events = state.events.iter().filter(|event| event.seq >= first && event.seq <= up_to).take(range.max_events).cloned().collect();
        Ok(Page { events, head: state.head })
    }

    async fn raise_floor(&self, _tenant: &TenantId, _older_than: Timestamp, _limit: usize) -> Result<Retired, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn sweep(&self, _tenant: &TenantId, _raised_before: Timestamp, _limit: usize) -> Result<Retired, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn expire_keys(&self, _now: Timestamp, _limit: usize) -> Result<u64, StoreError> {
        Ok(0)
    }
}

fn status(key: &ConsumerKey, row: &CursorRow, head: Head, now: Timestamp) -> ConsumerStatus {
    ConsumerStatus { name: key.name.clone(), row: row.clone(), head: head.seq, epoch: head.epoch, updated_at: now }
}

#[async_trait]
impl CursorStore for Memory {
    async fn take(&self, take: &Take, _max_consumers: usize) -> Result<Taken, StoreError> {
        self.pass().await;
        let mut state = self.state();
        let is_there = state.principals.iter().any(|principal| principal.id == take.key.agent && principal.enabled);
        if state.serves != TenantState::Active || !is_there {
            return Err(StoreError::TenantInactive);
        }
        state.calls.push(Call::Take(take.holder));
        let head = state.head;
        let created = !state.rows.contains_key(&take.key);
        let row = state.rows.entry(take.key.clone()).or_insert_with(|| CursorRow {
            acked: head.seq,
            epoch: head.epoch,
            holder: None,
            window_version: 0,
            window: RestWindow::default(),
        });
        let previous = row.holder.replace(take.holder);
        if previous != row.holder {
            row.window = RestWindow::default();
            row.window_version += 1;
        }
        row.epoch = head.epoch;
        Ok(Taken { row: row.clone(), created, previous, head: head.seq, floor: head.floor, epoch: head.epoch, now: self.clock.now() })
    }

    async fn status(&self, key: &ConsumerKey) -> Result<Option<ConsumerStatus>, StoreError> {
        let state = self.state();
        Ok(state.rows.get(key).map(|row| status(key, row, state.head, self.clock.now())))
    }

    async fn save(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, StoreError> {
        self.pass().await;
        let mut state = self.state();
        if let Some(error) = &state.broken_saves {
            return Err(error.clone());
        }
        let mut outcomes = Vec::new();
        for save in saves {
            state.calls.push(Call::Save(save.holder, save.acked.map(Seq::get)));
            outcomes.push(match state.rows.get_mut(&save.key) {
                Some(row) if row.holder == Some(save.holder) => {
                    row.acked = row.acked.max(save.acked.unwrap_or_default());
                    SaveOutcome::Held(row.acked)
                }
                _ => SaveOutcome::Replaced,
            });
        }
        Ok(outcomes)
    }

    async fn ack(&self, key: &ConsumerKey, seq: Seq) -> Result<Option<ConsumerStatus>, StoreError> {
        let mut state = self.state();
        let head = state.head;
        Ok(state.rows.get_mut(key).map(|row| {
            row.acked = row.acked.max(seq);
            status(key, row, head, self.clock.now())
        }))
    }

    async fn restart(&self, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, StoreError> {
        self.pass().await;
        let mut state = self.state();
        state.calls.push(Call::Restart(seq.get()));
        Ok(match state.rows.get_mut(key) {
            Some(row) if row.holder == Some(holder) => {
                row.acked = seq;
                row.window = RestWindow::default();
                row.window_version += 1;
                SaveOutcome::Held(seq)
            }
            _ => SaveOutcome::Replaced,
        })
    }

    async fn write_window(&self, write: &WindowWrite) -> Result<bool, StoreError> {
        self.pass().await;
        let mut state = self.state();
        let Some(row) = state.rows.get_mut(&write.key) else { return Ok(false) };
        if row.holder != Some(Holder::Rest) || row.window_version != write.expected_version {
            return Ok(false);
        }
        row.window = write.window.clone();
        row.window_version += 1;
        state.calls.push(Call::Window);
        Ok(true)
    }

    async fn list(
        &self,
        _tenant: &TenantId,
        agent: &PrincipalId,
        _after: Option<&ConsumerName>,
        _limit: usize,
    ) -> Result<Vec<ConsumerStatus>, StoreError> {
        let state = self.state();
        let own = state.rows.iter().filter(|(key, _)| key.agent == *agent);
        Ok(own.map(|(key, row)| status(key, row, state.head, self.clock.now())).collect())
    }

    async fn taken_since(&self, _since: Timestamp) -> Result<Vec<(ConsumerKey, Option<Holder>)>, StoreError> {
        Ok(self.state().rows.iter().map(|(key, row)| (key.clone(), row.holder)).collect())
    }
}

#[async_trait]
impl IdentityStore for Memory {
    async fn credential(&self, hash: &TokenHash) -> Result<Option<Credential>, StoreError> {
        let state = self.state();
        let Some(token) = state.tokens.iter().find(|token| token.hash == *hash) else { return Ok(None) };
        let Some(principal) = state.principals.iter().find(|principal| principal.id == token.principal) else { return Ok(None) };
        let tenant_state = state.serves;
        Ok(Some(Credential { tenant: self.tenant.clone(), tenant_state, token: token.clone(), principal: principal.clone() }))
    }

    async fn rights(&self, _tenant: &TenantId, id: &PrincipalId) -> Result<Option<Rights>, StoreError> {
        let state = self.state();
        let Some(found) = state.principals.iter().find(|principal| principal.id == *id) else { return Ok(None) };
        let own = state.grants.iter().filter(|(principal, ..)| principal == id);
        let grants = own.map(|(_, resource, permission)| (resource.clone(), *permission)).collect();
        Ok(Some(Rights { principal: id.clone(), kind: found.kind, role: found.role, enabled: found.enabled, grants }))
    }

    async fn tenant(&self, tenant: &TenantId) -> Result<Option<Tenant>, StoreError> {
        let state = self.state();
        let row =
            Tenant { id: tenant.clone(), state: state.serves, head: state.head.seq, epoch: state.head.epoch, created_at: self.clock.now() };
        Ok((*tenant == self.tenant).then_some(row))
    }

    async fn tenants(&self, _keyset: &Keyset) -> Result<Vec<Tenant>, StoreError> {
        Ok(self.tenant(&self.tenant).await?.into_iter().collect())
    }

    async fn principal(&self, _tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        Ok(self.state().principals.iter().find(|principal| principal.id == *id).cloned())
    }

    async fn principals(&self, _tenant: &TenantId, _keyset: &Keyset) -> Result<Vec<Principal>, StoreError> {
        Ok(self.state().principals.clone())
    }

    async fn tokens(&self, _tenant: &TenantId, _principal: &PrincipalId, _keyset: &Keyset) -> Result<Vec<TokenRecord>, StoreError> {
        Ok(self.state().tokens.clone())
    }

    async fn spaces(&self, _tenant: &TenantId, _keyset: &Keyset) -> Result<Vec<Space>, StoreError> {
        Ok(Vec::new())
    }

    async fn channels(&self, _tenant: &TenantId, _space: &SpaceId, _keyset: &Keyset) -> Result<Option<Vec<Channel>>, StoreError> {
        Ok(None)
    }

    async fn channel_exists(&self, _tenant: &TenantId, _channel: &ChannelRef) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn grants(&self, _tenant: &TenantId, _principal: Option<&PrincipalId>, _keyset: &Keyset) -> Result<Vec<Grant>, StoreError> {
        Ok(Vec::new())
    }

    async fn audit(&self, _tenant: &TenantId, _filter: &AuditFilter, _keyset: &Keyset) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(self.state().denials.clone())
    }

    async fn record_denials(&self, denials: &[(TenantId, AuditEntry)]) -> Result<(), StoreError> {
        self.state().denials.extend(denials.iter().map(|(_, entry)| entry.clone()));
        Ok(())
    }

    async fn touch_tokens(&self, _uses: &[TokenUse]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn idempotent_answer(
        &self,
        _tenant: &TenantId,
        _principal: &PrincipalId,
        _key: &str,
        _not_before: Timestamp,
    ) -> Result<Option<IdempotentAnswer>, StoreError> {
        Ok(None)
    }

    async fn prune(&self, _audit_before: Timestamp, _answers_before: Timestamp, _limit: usize) -> Result<u64, StoreError> {
        Ok(0)
    }
}
