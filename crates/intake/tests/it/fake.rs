//! A log with its schedule and the identities that publishing asks for, in memory: transactions work on a copy that takes the place of the
//! state when they commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use authz::{
    AuditEntry, AuditFilter, Channel, Credential, Grant, IdempotentAnswer, IdentityStore, Keyset, Principal, Rights, Space, Tenant,
    TokenHash, TokenRecord, TokenUse,
};
use domain::{
    Appended, BodyHash, ChannelRef, DeduplicationKey, EventId, PrincipalId, Publication, Seq, SpaceId, StoreError, SyncEpoch, TenantId,
    Timestamp, Transactions, Unit,
};
use intake::{PublishLimits, PublishTx, Schedule, ScheduleStore, ScheduleWrite, Scheduled, ScheduledState, Staged};
use sync::{Append, AppendAnswer, Head, LogWrite};
use uuid::Uuid;

/// What a deduplication key stands for.
#[derive(Clone)]
struct Key {
    hash: BodyHash,
    id: EventId,
    seq: Option<Seq>,
}

/// Everything that is stored; one tenant's log, unless a test schedules for another.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) log: Vec<(TenantId, Publication)>,
    pub(crate) scheduled: Vec<(TenantId, Scheduled)>,
    keys: BTreeMap<DeduplicationKey, Key>,
    pub(crate) channels: BTreeSet<ChannelRef>,
    pub(crate) credentials: Vec<Credential>,
    pub(crate) grants: Vec<(PrincipalId, authz::Resource, authz::Permission)>,
    /// Events that the log refuses for good.
    pub(crate) poison: BTreeSet<EventId>,
    /// What applications handed in.
    pub(crate) staged: Vec<(TenantId, Staged)>,
    pub(crate) limits: Option<PublishLimits>,
    /// Questions after channels and agents.
    pub(crate) asked: usize,
}

/// The store, with its faults.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) state: Mutex<State>,
    /// Every call about the log fails.
    pub(crate) broken: AtomicBool,
    /// Channels that the transaction finds gone although memory knows them.
    pub(crate) transactions: AtomicU64,
    pub(crate) appends: AtomicU64,
}

impl Fake {
    pub(crate) fn snapshot(&self) -> Result<State, StoreError> {
        if self.broken.load(Ordering::SeqCst) { Err(StoreError::Unavailable) } else { Ok(self.state.lock().unwrap().clone()) }
    }
}

impl State {
    fn head(&self, tenant: &TenantId) -> Seq {
        Seq::new(self.log.iter().filter(|(t, _)| t == tenant).count() as u64).unwrap()
    }

    pub(crate) fn is_agent(&self, tenant: &TenantId, agent: &PrincipalId) -> bool {
        let is_it = |credential: &&Credential| credential.tenant == *tenant && credential.principal.id == *agent;
        let found = self.credentials.iter().find(is_it);
        found.is_some_and(|found| found.principal.enabled && found.principal.kind == authz::PrincipalKind::Agent)
    }

    fn take_key(&mut self, publication: &Publication, seq: Option<Seq>) -> Option<Appended> {
        let wanted = publication.deduplication.clone()?;
        match self.keys.get_mut(&wanted.key) {
            Some(key) if key.hash != wanted.body_hash => Some(Appended::Conflict),
            // The event itself, on its way from the schedule into the log.
            Some(key) if key.id == publication.id => {
                key.seq = seq;
                None
            }
            Some(key) => Some(Appended::Duplicate { id: key.id, seq: key.seq }),
            None => {
                self.keys.insert(wanted.key, Key { hash: wanted.body_hash, id: publication.id, seq });
                None
            }
        }
    }

    fn append(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, StoreError> {
        if publications.iter().any(|publication| self.poison.contains(&publication.id)) {
            return Err(StoreError::Conflict("poison"));
        }
        let mut appended = Vec::new();
        for publication in publications {
            let seq = self.head(tenant).next();
            appended.push(self.take_key(publication, Some(seq)).unwrap_or_else(|| {
                self.log.push((tenant.clone(), publication.clone()));
                Appended::New { seq, id: publication.id }
            }));
        }
        Ok(appended)
    }
}

#[async_trait]
impl Append for Fake {
    async fn append(&self, tenant: &TenantId, publications: Vec<Publication>) -> Result<AppendAnswer, StoreError> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        let mut state = self.snapshot()?;
        let appended = state.append(tenant, &publications)?;
        let head = state.head(tenant);
        if !appended.contains(&Appended::Conflict) {
            *self.state.lock().unwrap() = state;
        }
        Ok(AppendAnswer { appended, head })
    }
}

#[async_trait]
impl Transactions<dyn PublishTx> for Fake {
    async fn run(&self, _name: &'static str, mut unit: Unit<dyn PublishTx>) -> Result<(), StoreError> {
        self.transactions.fetch_add(1, Ordering::SeqCst);
        // The first run is always undone: a unit of work that keeps something outside its transaction shows itself.
        unit(&mut Tx(self.snapshot()?)).await.ok();
        let mut tx = Tx(self.snapshot()?);
        unit(&mut tx).await?;
        *self.state.lock().unwrap() = tx.0;
        Ok(())
    }
}

/// A transaction over a copy of the state.
pub(crate) struct Tx(pub(crate) State);

impl Tx {
    fn find(&self, tenant: &TenantId, id: EventId) -> Option<usize> {
        self.0.scheduled.iter().position(|(t, event)| t == tenant && event.schedule.publication.id == id)
    }
}

#[async_trait]
impl LogWrite for Tx {
    async fn append(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, StoreError> {
        self.0.append(tenant, publications)
    }

    async fn log_head(&mut self, tenant: &TenantId) -> Result<Head, StoreError> {
        Ok(Head { seq: self.0.head(tenant), floor: Seq::ZERO.next(), epoch: SyncEpoch::new(Uuid::nil()) })
    }
}

#[async_trait]
impl ScheduleWrite for Tx {
    async fn schedule(&mut self, tenant: &TenantId, schedule: &Schedule) -> Result<Option<Appended>, StoreError> {
        let known = self.0.take_key(&schedule.publication, None);
        if known.is_none() {
            let waiting = Scheduled { schedule: schedule.clone(), state: ScheduledState::Waiting, failure: None };
            self.0.scheduled.push((tenant.clone(), waiting));
        }
        Ok(known)
    }

    async fn cancel(&mut self, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, StoreError> {
        let Some(at) = self.find(tenant, id) else { return Ok(None) };
        let (_, event) = self.0.scheduled.remove(at);
        self.0.keys.retain(|_, key| key.id != id);
        Ok(Some(event))
    }

    async fn promote(&mut self, tenant: &TenantId, id: EventId) -> Result<Option<Schedule>, StoreError> {
        let Some(at) = self.find(tenant, id) else { return Ok(None) };
        if self.0.scheduled[at].1.state != ScheduledState::Waiting {
            return Ok(None);
        }
        Ok(Some(self.0.scheduled.remove(at).1.schedule))
    }

    async fn fail(&mut self, tenant: &TenantId, id: EventId, failure: &str) -> Result<bool, StoreError> {
        let Some(at) = self.find(tenant, id) else { return Ok(false) };
        let event = &mut self.0.scheduled[at].1;
        let waited = event.state == ScheduledState::Waiting;
        event.state = ScheduledState::Failed;
        event.failure = Some(failure.to_owned());
        Ok(waited)
    }

    async fn has_agent(&mut self, tenant: &TenantId, agent: &PrincipalId) -> Result<bool, StoreError> {
        self.0.asked += 1;
        Ok(self.0.is_agent(tenant, agent))
    }

    async fn has_channel(&mut self, _tenant: &TenantId, channel: &ChannelRef) -> Result<bool, StoreError> {
        self.0.asked += 1;
        Ok(self.0.channels.contains(channel))
    }
}

#[async_trait]
impl ScheduleStore for Fake {
    async fn scheduled(
        &self,
        tenant: &TenantId,
        publisher: Option<&PrincipalId>,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
    ) -> Result<Vec<Scheduled>, StoreError> {
        let key = |event: &Scheduled| (event.schedule.available_at, event.schedule.publication.id);
        let mut all: Vec<_> = self.snapshot()?.scheduled.into_iter().filter(|(t, _)| t == tenant).map(|(_, event)| event).collect();
        all.retain(|event| publisher.is_none_or(|own| event.schedule.publisher == *own) && after.is_none_or(|after| key(event) > after));
        all.sort_by_key(key);
        all.truncate(limit);
        Ok(all)
    }

    async fn scheduled_event(&self, tenant: &TenantId, id: EventId) -> Result<Option<Scheduled>, StoreError> {
        let found = self.snapshot()?.scheduled.into_iter().find(|(t, event)| t == tenant && event.schedule.publication.id == id);
        Ok(found.map(|(_, event)| event))
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, EventId)>, StoreError> {
        let mut due = self.snapshot()?.scheduled;
        due.retain(|(_, event)| event.state == ScheduledState::Waiting && event.schedule.available_at <= now);
        due.sort_by_key(|(_, event)| event.schedule.available_at);
        Ok(due.into_iter().take(limit).map(|(tenant, event)| (tenant, event.schedule.publication.id)).collect())
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let waiting = self.snapshot()?.scheduled.into_iter().filter(|(_, event)| event.state == ScheduledState::Waiting);
        Ok(waiting.map(|(_, event)| event.schedule.available_at).min())
    }
}

const UNUSED: StoreError = StoreError::Unavailable;

#[async_trait]
impl IdentityStore for Fake {
    async fn credential(&self, hash: &TokenHash) -> Result<Option<Credential>, StoreError> {
        Ok(self.state.lock().unwrap().credentials.iter().find(|credential| credential.token.hash == *hash).cloned())
    }

    async fn rights(&self, _tenant: &TenantId, principal: &PrincipalId) -> Result<Option<Rights>, StoreError> {
        let state = self.state.lock().unwrap();
        let Some(found) = state.credentials.iter().find(|credential| credential.principal.id == *principal) else { return Ok(None) };
        let Principal { id, kind, role, enabled, .. } = found.principal.clone();
        let own = state.grants.iter().filter(|(owner, _, _)| owner == principal);
        let grants = own.map(|(_, resource, permission)| (resource.clone(), *permission)).collect();
        Ok(Some(Rights { principal: id, kind, role, enabled, grants }))
    }

    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        let state = self.state.lock().unwrap();
        let found = state.credentials.iter().find(|credential| credential.tenant == *tenant && credential.principal.id == *id);
        Ok(found.map(|credential| credential.principal.clone()))
    }

    async fn channel_exists(&self, _tenant: &TenantId, channel: &ChannelRef) -> Result<bool, StoreError> {
        Ok(self.state.lock().unwrap().channels.contains(channel))
    }

    async fn tenant(&self, _tenant: &TenantId) -> Result<Option<Tenant>, StoreError> {
        Err(UNUSED)
    }

    async fn tenants(&self, _keyset: &Keyset) -> Result<Vec<Tenant>, StoreError> {
        Err(UNUSED)
    }

    async fn principals(&self, _tenant: &TenantId, _keyset: &Keyset) -> Result<Vec<Principal>, StoreError> {
        Err(UNUSED)
    }

    async fn tokens(&self, _tenant: &TenantId, _principal: &PrincipalId, _keyset: &Keyset) -> Result<Vec<TokenRecord>, StoreError> {
        Err(UNUSED)
    }

    async fn spaces(&self, _tenant: &TenantId, _keyset: &Keyset) -> Result<Vec<Space>, StoreError> {
        Err(UNUSED)
    }

    async fn channels(&self, _tenant: &TenantId, _space: &SpaceId, _keyset: &Keyset) -> Result<Option<Vec<Channel>>, StoreError> {
        Err(UNUSED)
    }

    async fn grants(&self, _tenant: &TenantId, _principal: Option<&PrincipalId>, _keyset: &Keyset) -> Result<Vec<Grant>, StoreError> {
        Err(UNUSED)
    }

    async fn audit(&self, _tenant: &TenantId, _filter: &AuditFilter, _keyset: &Keyset) -> Result<Vec<AuditEntry>, StoreError> {
        Err(UNUSED)
    }

    async fn record_denials(&self, _denials: &[(TenantId, AuditEntry)]) -> Result<(), StoreError> {
        Err(UNUSED)
    }

    async fn touch_tokens(&self, _uses: &[TokenUse]) -> Result<(), StoreError> {
        Err(UNUSED)
    }

    async fn idempotent_answer(
        &self,
        _tenant: &TenantId,
        _principal: &PrincipalId,
        _key: &str,
        _not_before: Timestamp,
    ) -> Result<Option<IdempotentAnswer>, StoreError> {
        Err(UNUSED)
    }

    async fn prune(&self, _audit_before: Timestamp, _answers_before: Timestamp, _limit: usize) -> Result<u64, StoreError> {
        Err(UNUSED)
    }
}
