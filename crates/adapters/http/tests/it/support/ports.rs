//! The ports of the core over [`Memory`].

use agents::{ConsumerKey, ConsumerStatus, CursorRow, CursorStore, Holder, RestWindow, Save, SaveOutcome, Take, Taken, WindowWrite};
use async_trait::async_trait;
use authz::{
    AdminTx, AuditEntry, AuditFilter, Channel, Credential, Grant, IdempotentAnswer, IdentityStore, Keyset, Principal, Rights, Space,
    Tenant, TokenHash, TokenRecord, TokenUse,
};
use domain::{
    Appended, ChannelRef, Clock, ConsumerName, EventId, PrincipalId, Publication, Seq, SpaceId, StoreError, SystemClock, TenantId,
    Timestamp, Transactions, Unit,
};
use intake::{PublishTx, ScheduleStore, Scheduled};
use sync::{Append, AppendAnswer, Head, LogStore, Page, PageRange, Retired};

use super::Memory;

#[async_trait]
impl Append for Memory {
    async fn append(&self, _tenant: &TenantId, publications: Vec<Publication>) -> Result<AppendAnswer, StoreError> {
        if let Some(error) = self.state().broken_writes.clone() {
            return Err(error);
        }
        let seqs = self.append_all(&publications);
        let appended = publications.iter().zip(seqs).map(|(publication, seq)| Appended::New { seq, id: publication.id }).collect();
        Ok(AppendAnswer { appended, head: self.state().head.seq })
    }
}

/// Units of work are the real stores' business; here they only fail.
#[async_trait]
impl Transactions<dyn AdminTx> for Memory {
    async fn run(&self, _name: &'static str, _unit: Unit<dyn AdminTx>) -> Result<(), StoreError> {
        Err(self.state().broken_writes.clone().unwrap_or(StoreError::Unavailable))
    }
}

#[async_trait]
impl Transactions<dyn PublishTx> for Memory {
    async fn run(&self, _name: &'static str, _unit: Unit<dyn PublishTx>) -> Result<(), StoreError> {
        Err(self.state().broken_writes.clone().unwrap_or(StoreError::Unavailable))
    }
}

#[async_trait]
impl ScheduleStore for Memory {
    async fn scheduled(
        &self,
        _tenant: &TenantId,
        _publisher: Option<&PrincipalId>,
        _after: Option<(Timestamp, EventId)>,
        _limit: usize,
    ) -> Result<Vec<Scheduled>, StoreError> {
        Ok(Vec::new())
    }

    async fn scheduled_event(&self, _tenant: &TenantId, _id: EventId) -> Result<Option<Scheduled>, StoreError> {
        Ok(None)
    }

    async fn due(&self, _now: Timestamp, _limit: usize) -> Result<Vec<(TenantId, EventId)>, StoreError> {
        Ok(Vec::new())
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl LogStore for Memory {
    async fn head(&self, tenant: &TenantId) -> Result<Option<Head>, StoreError> {
        Ok((*tenant == Self::tenant()).then(|| self.state().head))
    }

    async fn heads(&self, tenants: &[TenantId]) -> Result<Vec<(TenantId, Head)>, StoreError> {
        let head = self.state().head;
        Ok(tenants.iter().filter(|tenant| **tenant == Self::tenant()).map(|tenant| (tenant.clone(), head)).collect())
    }

    async fn page(&self, _tenant: &TenantId, range: PageRange) -> Result<Page, StoreError> {
        let state = self.state();
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

fn now() -> Timestamp {
    SystemClock::new().now()
}

fn status(key: &ConsumerKey, row: &CursorRow, head: Head) -> ConsumerStatus {
    ConsumerStatus { name: key.name.clone(), row: row.clone(), head: head.seq, epoch: head.epoch, updated_at: now() }
}

#[async_trait]
impl CursorStore for Memory {
    async fn take(&self, take: &Take, _max_consumers: usize) -> Result<Taken, StoreError> {
        let mut state = self.state();
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
        Ok(Taken { row: row.clone(), created, previous, head: head.seq, floor: head.floor, epoch: head.epoch, now: now() })
    }

    async fn status(&self, key: &ConsumerKey) -> Result<Option<ConsumerStatus>, StoreError> {
        let state = self.state();
        Ok(state.rows.get(key).map(|row| status(key, row, state.head)))
    }

    async fn save(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, StoreError> {
        let mut state = self.state();
        let save = |save: &Save| match state.rows.get_mut(&save.key) {
            Some(row) if row.holder == Some(save.holder) => {
                row.acked = row.acked.max(save.acked.unwrap_or_default());
                SaveOutcome::Held(row.acked)
            }
            _ => SaveOutcome::Replaced,
        };
        Ok(saves.iter().map(save).collect())
    }

    async fn ack(&self, key: &ConsumerKey, seq: Seq) -> Result<Option<ConsumerStatus>, StoreError> {
        let mut state = self.state();
        if let Some(error) = &state.broken_writes {
            return Err(error.clone());
        }
        let head = state.head;
        Ok(state.rows.get_mut(key).map(|row| {
            row.acked = row.acked.max(seq);
            status(key, row, head)
        }))
    }

    async fn restart(&self, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, StoreError> {
        match self.state().rows.get_mut(key) {
            Some(row) if row.holder == Some(holder) => {
                (row.acked, row.window, row.window_version) = (seq, RestWindow::default(), row.window_version + 1);
                Ok(SaveOutcome::Held(seq))
            }
            _ => Ok(SaveOutcome::Replaced),
        }
    }

    async fn write_window(&self, write: &WindowWrite) -> Result<bool, StoreError> {
        match self.state().rows.get_mut(&write.key) {
            Some(row) if row.holder == Some(Holder::Rest) && row.window_version == write.expected_version => {
                (row.window, row.window_version) = (write.window.clone(), row.window_version + 1);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn list(
        &self,
        _tenant: &TenantId,
        agent: &PrincipalId,
        after: Option<&ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerStatus>, StoreError> {
        let state = self.state();
        let own = state.rows.iter().filter(|(key, _)| key.agent == *agent && after.is_none_or(|after| key.name > *after));
        Ok(own.take(limit).map(|(key, row)| status(key, row, state.head)).collect())
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
        let tenant_state = state.served;
        Ok(Some(Credential { tenant: Self::tenant(), tenant_state, token: token.clone(), principal: principal.clone() }))
    }

    async fn rights(&self, _tenant: &TenantId, id: &PrincipalId) -> Result<Option<Rights>, StoreError> {
        let cursed = self.state().cursed.clone();
        assert!(cursed.as_ref() != Some(id), "a fault of ours");
        let state = self.state();
        let Some(found) = state.principals.iter().find(|principal| principal.id == *id) else { return Ok(None) };
        let own = state.grants.iter().filter(|(principal, ..)| principal == id);
        let grants = own.map(|(_, resource, permission)| (resource.clone(), *permission)).collect();
        Ok(Some(Rights { principal: id.clone(), kind: found.kind, role: found.role, enabled: found.enabled, grants }))
    }

    async fn tenant(&self, tenant: &TenantId) -> Result<Option<Tenant>, StoreError> {
        let state = self.state();
        let (head, epoch) = (state.head.seq, state.head.epoch);
        let row = Tenant { id: tenant.clone(), state: state.served, head, epoch, created_at: now() };
        Ok((*tenant == Self::tenant()).then_some(row))
    }

    async fn tenants(&self, _keyset: &Keyset) -> Result<Vec<Tenant>, StoreError> {
        Ok(self.tenant(&Self::tenant()).await?.into_iter().collect())
    }

    async fn principal(&self, _tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        Ok(self.state().principals.iter().find(|principal| principal.id == *id).cloned())
    }

    async fn principals(&self, _tenant: &TenantId, keyset: &Keyset) -> Result<Vec<Principal>, StoreError> {
        let mut principals = self.state().principals.clone();
        principals.sort_by(|one, other| one.id.cmp(&other.id));
        principals.retain(|principal| keyset.after.as_deref().is_none_or(|after| principal.id.as_str() > after));
        principals.truncate(keyset.limit);
        Ok(principals)
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

    async fn channel_exists(&self, _tenant: &TenantId, channel: &ChannelRef) -> Result<bool, StoreError> {
        Ok(channel.as_str() == "support/general")
    }

    async fn grants(&self, _tenant: &TenantId, _principal: Option<&PrincipalId>, _keyset: &Keyset) -> Result<Vec<Grant>, StoreError> {
        Ok(Vec::new())
    }

    async fn audit(&self, _tenant: &TenantId, _filter: &AuditFilter, _keyset: &Keyset) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(Vec::new())
    }

    async fn record_denials(&self, _denials: &[(TenantId, AuditEntry)]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn touch_tokens(&self, _uses: &[TokenUse]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn idempotent_answer(
        &self,
        _tenant: &TenantId,
        principal: &PrincipalId,
        key: &str,
        _not_before: Timestamp,
    ) -> Result<Option<IdempotentAnswer>, StoreError> {
        let state = self.state();
        let own = state.answers.iter().find(|(of, taken, _)| of == principal && taken == key);
        Ok(own.map(|(_, _, answer)| answer.clone()))
    }

    async fn prune(&self, _audit_before: Timestamp, _answers_before: Timestamp, _limit: usize) -> Result<u64, StoreError> {
        Ok(0)
    }
}
