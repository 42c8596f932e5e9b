//! A store in memory that keeps to the documentation of the ports: each read sees one committed state, each unit works on a copy that becomes
//! the state when it commits. Every unit runs twice, the first time for nothing, as after a passing failure.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use authz::{AuditEntry, IdempotentAnswer};
use bytes::Bytes;
use domain::{
    Audience, Clock, Event, EventId, EventOrigin, EventType, IdGenerator, PrincipalId, Priority, Publication, QueueName, Seq, StoreError,
    SyncEpoch, TenantId, Timestamp, Transactions, Unit, Work, WorkFor,
};
use hooks::{
    AttemptRecord, Delivery, DueHook, DueQuery, Generation, GroupNumber, Hook, HookBell, HookId, HookKey, HookKind, HookState, HookStore,
    HookTotals, HookTx, KeyId, KeyMaterial, LogPosition, SealedRow, ServerKey, TenantHooks, WebhookId,
};
use inbox::{AckState, INBOX_REQUEUED, INBOX_RESUMED, Item, Presence, Recipient, RecipientNumber, RecipientRow, Tails};
use serde_json::json;
use sync::{Head, LogStore, Page, PageRange, Retired};
use tokio::time::Instant;
use uuid::Uuid;

use crate::memory_tx::Tx;

pub(crate) const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

pub(crate) fn tenant() -> TenantId {
    TenantId::parse("default").unwrap()
}

pub(crate) fn other_tenant() -> TenantId {
    TenantId::parse("other").unwrap()
}

pub(crate) fn agent(id: &str) -> PrincipalId {
    PrincipalId::parse(id).unwrap()
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}

/// Agents whose name begins with `other-` are in the other tenant.
pub(crate) fn recipient(id: &str) -> Recipient {
    let tenant = if id.starts_with("other-") { other_tenant() } else { tenant() };
    Recipient { tenant, agent: agent(id) }
}

/// Follows tokio's time, which tests stop and move.
#[derive(Debug)]
pub(crate) struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        START.plus(self.0.elapsed())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counting(AtomicUsize);

impl IdGenerator for Counting {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(0x1000 + self.0.fetch_add(1, Ordering::Relaxed) as u128)
    }
}

/// One tenant's log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) epoch: SyncEpoch,
    pub(crate) floor: Seq,
    pub(crate) rows: Vec<Publication>,
}

impl Default for Log {
    fn default() -> Self {
        Self { epoch: SyncEpoch::new(Uuid::from_u128(77)), floor: Seq::ZERO.next(), rows: Vec::new() }
    }
}

impl Log {
    pub(crate) fn head(&self) -> Head {
        Head { seq: Seq::new(self.rows.len() as u64).unwrap(), floor: self.floor, epoch: self.epoch }
    }

    fn event(&self, seq: Seq) -> Arc<Event> {
        let row = &self.rows[usize::try_from(seq.get()).unwrap() - 1];
        let (event_type, audience) = (row.event_type.clone(), row.audience.clone());
        Arc::new(Event::new(seq, row.id, event_type, row.channel.clone(), audience, row.origin, row.created_at, row.body.clone()))
    }
}

/// Everything that is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) logs: BTreeMap<TenantId, Log>,
    pub(crate) rows: BTreeMap<Recipient, RecipientRow>,
    pub(crate) items: BTreeMap<(Recipient, EventId), Item>,
    pub(crate) hooks: BTreeMap<HookId, Hook>,
    pub(crate) keys: BTreeMap<(HookId, KeyId), HookKey>,
    pub(crate) deliveries: BTreeMap<(HookId, WebhookId), Delivery>,
    pub(crate) attempts: HashMap<HookId, Vec<AttemptRecord>>,
    pub(crate) positions: BTreeMap<TenantId, LogPosition>,
    pub(crate) generation: u64,
    pub(crate) server_keys: Vec<ServerKey>,
    pub(crate) audit: Vec<AuditEntry>,
    pub(crate) answers: BTreeMap<String, IdempotentAnswer>,
}

impl State {
    pub(crate) fn log(&mut self, tenant: &TenantId) -> &mut Log {
        self.logs.entry(tenant.clone()).or_default()
    }

    pub(crate) fn append(&mut self, tenant: &TenantId, publications: &[Publication]) -> Vec<Seq> {
        let log = self.log(tenant);
        let append = |publication: &Publication| {
            log.rows.push(publication.clone());
            Seq::new(log.rows.len() as u64).unwrap()
        };
        publications.iter().map(append).collect()
    }

    pub(crate) fn open(&mut self, recipient: &Recipient) -> &mut RecipientRow {
        let number = RecipientNumber::new(i64::try_from(self.rows.len()).unwrap() + 1);
        self.rows.entry(recipient.clone()).or_insert_with(|| RecipientRow {
            number,
            recipient: recipient.clone(),
            head: Seq::ZERO,
            next_due: None,
            presence: Presence::In,
            paused: false,
            paused_queues: std::collections::BTreeSet::new(),
            policy: inbox::Policy::default(),
            active_session: None,
        })
    }

    pub(crate) fn keys_of(&self, hook: HookId) -> Vec<HookKey> {
        let mut keys: Vec<_> = self.keys.iter().filter(|((of, _), _)| *of == hook).map(|(_, key)| key.clone()).collect();
        keys.sort_by_key(|key| std::cmp::Reverse(key.created_at));
        keys
    }

    pub(crate) fn deliveries_of(&self, hook: HookId) -> Vec<Delivery> {
        let mut rings: Vec<_> = self.deliveries.iter().filter(|((of, _), _)| *of == hook).map(|(_, ring)| ring.clone()).collect();
        rings.sort_by_key(|ring| (ring.next_at, ring.cause));
        rings
    }

    fn active(&self, tenant: &TenantId) -> impl Iterator<Item = &Hook> {
        self.hooks.values().filter(move |hook| hook.tenant == *tenant && hook.state == HookState::Active)
    }
}

/// The store, with the bell that hangs on its log.
pub(crate) struct Memory {
    pub(crate) clock: Arc<TestClock>,
    pub(crate) ids: Arc<Counting>,
    state: Mutex<State>,
    writer: tokio::sync::Mutex<()>,
    pub(crate) bell: OnceLock<Arc<HookBell>>,
    /// Units that are made to fail before they run.
    pub(crate) failing: Mutex<Option<&'static str>>,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        let memory = Self {
            clock: Arc::new(TestClock(Instant::now())),
            ids: Arc::default(),
            state: Mutex::default(),
            writer: tokio::sync::Mutex::default(),
            bell: OnceLock::new(),
            failing: Mutex::default(),
        };
        memory.edit(|state| {
            state.log(&tenant());
            state.log(&other_tenant());
        });
        Arc::new(memory)
    }

    /// The same rows and the same time, for another process.
    pub(crate) fn reopened(&self) -> Arc<Self> {
        let (state, clock, ids) = (self.state(), Arc::clone(&self.clock), Arc::clone(&self.ids));
        let mut memory = Arc::into_inner(Self::new()).unwrap();
        (memory.state, memory.clock, memory.ids) = (Mutex::new(state), clock, ids);
        Arc::new(memory)
    }

    /// Has transactions wait until what is answered is dropped.
    pub(crate) async fn hold(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.writer.lock().await
    }

    /// The committed state.
    pub(crate) fn state(&self) -> State {
        self.state.lock().unwrap().clone()
    }

    /// Reads the committed state.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.lock().unwrap())
    }

    /// Changes the committed state past every rule.
    pub(crate) fn edit<T>(&self, edit: impl FnOnce(&mut State) -> T) -> T {
        edit(&mut self.state.lock().unwrap())
    }

    fn commit(&self, state: State) {
        let news: Vec<(TenantId, Vec<Arc<Event>>)> = {
            let mut now = self.state.lock().unwrap();
            let before: BTreeMap<TenantId, u64> = now.logs.iter().map(|(tenant, log)| (tenant.clone(), log.head().seq.get())).collect();
            *now = state;
            let of = |(tenant, log): (&TenantId, &Log)| {
                let from = before.get(tenant).copied().unwrap_or(0) + 1;
                (tenant.clone(), (from..=log.head().seq.get()).map(|seq| log.event(Seq::new(seq).unwrap())).collect())
            };
            now.logs.iter().map(of).collect()
        };
        if let Some(bell) = self.bell.get() {
            for (tenant, events) in &news {
                bell.observe(tenant, events);
            }
        }
    }

    /// Appends a row and does what it says, in one commit.
    async fn append(&self, tenant: &TenantId, row: Publication, also: impl FnOnce(&mut State, Seq) + Send) {
        let _writer = self.writer.lock().await;
        let mut state = self.state();
        let seq = state.append(tenant, &[row])[0];
        also(&mut state, seq);
        self.commit(state);
    }

    /// Publishes an event with one recipient.
    pub(crate) async fn publish(&self, to: &str, in_queue: &str) -> EventId {
        self.publish_item(to, in_queue, "something to do", "{}").await
    }

    pub(crate) async fn publish_item(&self, to: &str, in_queue: &str, summary: &str, payload: &str) -> EventId {
        let (recipient, now, id) = (recipient(to), self.clock.now(), EventId::new(self.ids.uuid()));
        let who = WorkFor { agent: recipient.agent.clone(), queue: queue(in_queue) };
        let work = Work {
            recipients: vec![who.clone()],
            priority: Priority::Normal,
            kind: Some("task".to_owned()),
            source: Some("tests".to_owned()),
            summary: summary.to_owned(),
            available_at: now,
            claim_key: now,
            expires_at: None,
            max_attempts: 5,
        };
        let event_type = EventType::parse("task.created").unwrap();
        let body = Bytes::from(format!("\"id\":\"{id}\",\"payload\":{payload}}}"));
        let row = Publication {
            id,
            event_type: event_type.clone(),
            channel: None,
            audience: Audience::new(std::slice::from_ref(&who.agent)),
            origin: EventOrigin::Work,
            created_at: now,
            body,
            deduplication: None,
            work: Some(Arc::new(work.clone())),
        };
        let tenant = recipient.tenant.clone();
        self.append(&tenant, row, move |state, seq| {
            let inbox = state.open(&recipient);
            inbox.head = seq;
            let item = Item::new(inbox.number, &who, &work, id, seq, &event_type, None, now, 100);
            state.items.insert((recipient, id), item);
        })
        .await;
        id
    }

    /// The item becomes claimable again.
    pub(crate) async fn requeue(&self, to: &str, event: EventId) {
        let recipient = recipient(to);
        let row = self.server_row(&recipient, INBOX_REQUEUED, &json!({ "event_id": event, "queue": "inbox" }));
        let tenant = recipient.tenant.clone();
        self.append(&tenant, row, move |state, seq| {
            state.open(&recipient).head = seq;
            let item = state.items.get_mut(&(recipient, event)).unwrap();
            (item.state, item.ring_seq) = (AckState::Available, seq);
            item.delivery_attempts += 1;
        })
        .await;
    }

    /// The inbox, or one queue, is to be rung again.
    pub(crate) async fn resume(&self, to: &str, of: Option<&str>) {
        let recipient = recipient(to);
        let payload = of.map_or_else(|| json!({ "cause": "presence" }), |queue| json!({ "cause": "unpaused", "queue": queue }));
        let row = self.server_row(&recipient, INBOX_RESUMED, &payload);
        let tenant = recipient.tenant.clone();
        self.append(&tenant, row, move |state, _| {
            let inbox = state.open(&recipient);
            (inbox.presence, inbox.paused) = (Presence::In, false);
            inbox.paused_queues.clear();
        })
        .await;
    }

    /// An event that concerns no hook.
    pub(crate) async fn chatter(&self) {
        let row = Publication {
            origin: EventOrigin::Published,
            ..self.server_row(&recipient("alpha"), "message.created", &json!({ "text": "hello" }))
        };
        self.append(&tenant(), row, |_, _| {}).await;
    }

    fn server_row(&self, to: &Recipient, event_type: &str, payload: &serde_json::Value) -> Publication {
        let id = EventId::new(self.ids.uuid());
        Publication {
            id,
            event_type: EventType::parse(event_type).unwrap(),
            channel: None,
            audience: Audience::new(std::slice::from_ref(&to.agent)),
            origin: EventOrigin::Server,
            created_at: self.clock.now(),
            body: Bytes::from(format!("\"id\":\"{id}\",\"payload\":{payload}}}")),
            deduplication: None,
            work: None,
        }
    }
}

#[async_trait]
impl Transactions<dyn HookTx> for Memory {
    async fn run(&self, name: &'static str, mut unit: Unit<dyn HookTx>) -> Result<(), StoreError> {
        let _writer = self.writer.lock().await;
        if *self.failing.lock().unwrap() == Some(name) {
            return Err(StoreError::Unavailable);
        }
        let begin = || Tx { state: self.state(), now: self.clock.now() };
        // Rolled back.
        let _ = unit(&mut begin()).await;
        let mut tx = begin();
        unit(&mut tx).await?;
        self.commit(tx.state);
        Ok(())
    }
}

#[async_trait]
impl Tails for Memory {
    async fn keep(&self, _: &TenantId) -> Result<Box<dyn Send + Sync>, StoreError> {
        Ok(Box::new(()))
    }
}

#[async_trait]
impl LogStore for Memory {
    async fn head(&self, tenant: &TenantId) -> Result<Option<Head>, StoreError> {
        Ok(self.read(|state| state.logs.get(tenant).map(Log::head)))
    }

    async fn heads(&self, tenants: &[TenantId]) -> Result<Vec<(TenantId, Head)>, StoreError> {
        Ok(self.read(|state| tenants.iter().filter_map(|tenant| Some((tenant.clone(), state.logs.get(tenant)?.head()))).collect()))
    }

    async fn page(&self, tenant: &TenantId, range: PageRange) -> Result<Page, StoreError> {
        self.read(|state| {
            let log = state.logs.get(tenant).ok_or(StoreError::TenantInactive)?;
            let head = log.head();
            let from = range.after.next().max(log.floor).get();
            let events = (from..=head.seq.get()).take(range.max_events).map(|seq| log.event(Seq::new(seq).unwrap())).collect();
            Ok(Page { events, head })
        })
    }

    async fn raise_floor(&self, _: &TenantId, _: Timestamp, _: usize) -> Result<Retired, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn sweep(&self, _: &TenantId, _: Timestamp, _: usize) -> Result<Retired, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn expire_keys(&self, _: Timestamp, _: usize) -> Result<u64, StoreError> {
        Err(StoreError::Unavailable)
    }
}

#[async_trait]
impl HookStore for Memory {
    async fn hook(&self, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, StoreError> {
        Ok(self.read(|state| state.hooks.get(&id).filter(|hook| hook.tenant == *tenant).cloned()))
    }

    async fn hooks(
        &self,
        tenant: &TenantId,
        agent: Option<&PrincipalId>,
        kind: HookKind,
        after: Option<HookId>,
        limit: usize,
    ) -> Result<Vec<Hook>, StoreError> {
        let wanted = |hook: &&Hook| {
            hook.tenant == *tenant
                && hook.kind == kind
                && agent.is_none_or(|agent| *agent == hook.agent)
                && after.is_none_or(|after| hook.id > after)
        };
        Ok(self.read(|state| state.hooks.values().filter(wanted).take(limit).cloned().collect()))
    }

    async fn active_hooks(&self, tenant: &TenantId, agents: &[PrincipalId]) -> Result<Vec<Hook>, StoreError> {
        Ok(self.read(|state| state.active(tenant).filter(|hook| agents.contains(&hook.agent)).cloned().collect()))
    }

    async fn all_active_hooks(&self, tenant: &TenantId, after: Option<HookId>, limit: usize) -> Result<Vec<Hook>, StoreError> {
        Ok(self.read(|state| state.active(tenant).filter(|hook| after.is_none_or(|after| hook.id > after)).take(limit).cloned().collect()))
    }

    async fn keys(&self, hook: HookId) -> Result<Vec<HookKey>, StoreError> {
        Ok(self.read(|state| state.keys_of(hook)))
    }

    async fn attempts(&self, hook: HookId, limit: usize) -> Result<Vec<AttemptRecord>, StoreError> {
        Ok(self.read(|state| state.attempts.get(&hook).into_iter().flatten().rev().take(limit).cloned().collect()))
    }

    async fn due(&self, query: DueQuery<'_>) -> Result<Vec<DueHook>, StoreError> {
        self.read(|state| {
            let mut by_tenant: BTreeMap<&TenantId, Vec<DueHook>> = BTreeMap::new();
            for hook in state.hooks.values() {
                if !query.groups.contains(&GroupNumber(0)) || query.except.contains(&hook.id) || query.except_tenants.contains(&hook.tenant)
                {
                    continue;
                }
                let mut deliveries = state.deliveries_of(hook.id);
                deliveries.retain(|ring| ring.next_at <= query.now);
                deliveries.truncate(query.per_hook);
                if !deliveries.is_empty() {
                    let due = DueHook { hook: hook.clone(), group: GroupNumber(0), keys: state.keys_of(hook.id), deliveries };
                    by_tenant.entry(&hook.tenant).or_default().push(due);
                }
            }
            let mut turns: Vec<(usize, Timestamp, DueHook)> = Vec::new();
            for (_, mut dues) in by_tenant {
                dues.sort_by_key(|due| due.deliveries[0].next_at);
                turns.extend(dues.into_iter().enumerate().map(|(turn, due)| (turn, due.deliveries[0].next_at, due)));
            }
            turns.sort_by_key(|(turn, at, _)| (*turn, *at));
            Ok(turns.into_iter().take(query.hooks).map(|(_, _, due)| due).collect())
        })
    }

    async fn next_due(&self, groups: &[GroupNumber]) -> Result<Option<Timestamp>, StoreError> {
        let is_mine = groups.contains(&GroupNumber(0));
        Ok(self.read(|state| state.deliveries.values().map(|ring| ring.next_at).filter(|_| is_mine).min()))
    }

    async fn tenants(&self, groups: &[GroupNumber], after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantHooks>, StoreError> {
        self.read(|state| {
            let with_hooks =
                |tenant: &&TenantId| groups.contains(&GroupNumber(0)) && state.hooks.values().any(|hook| hook.tenant == **tenant);
            let tenants = state.logs.keys().filter(with_hooks).filter(|tenant| after.is_none_or(|after| *tenant > after));
            let row = |tenant: &TenantId| TenantHooks {
                tenant: tenant.clone(),
                group: GroupNumber(0),
                position: state.positions.get(tenant).copied(),
            };
            Ok(tenants.take(limit).map(row).collect())
        })
    }

    async fn groups(&self) -> Result<Vec<GroupNumber>, StoreError> {
        Ok(vec![GroupNumber(0)])
    }

    async fn server_keys(&self) -> Result<Vec<ServerKey>, StoreError> {
        Ok(self.read(|state| state.server_keys.clone()))
    }

    async fn sealed(&self, after: Option<(HookId, &KeyId)>, limit: usize) -> Result<Vec<SealedRow>, StoreError> {
        self.read(|state| {
            let rows = state.keys.iter().filter(|((hook, key), _)| after.is_none_or(|(h, k)| (*hook, key) > (h, k)));
            let sealed = |((hook, key), row): (&(HookId, KeyId), &HookKey)| match &row.material {
                KeyMaterial::Secret(secret) => {
                    Some(SealedRow { tenant: state.hooks[hook].tenant.clone(), hook: *hook, key: key.clone(), secret: secret.clone() })
                }
                KeyMaterial::Public(_) => None,
            };
            Ok(rows.filter_map(sealed).take(limit).collect())
        })
    }

    async fn totals(&self) -> Result<HookTotals, StoreError> {
        self.read(|state| {
            let count = |wanted: fn(HookState) -> bool| state.hooks.values().filter(|hook| wanted(hook.state)).count() as u64;
            Ok(HookTotals {
                active: count(|state| state == HookState::Active),
                pending: count(|state| state == HookState::PendingVerification),
                disabled: count(|state| matches!(state, HookState::Disabled(_))),
                outstanding: state.deliveries.len() as u64,
            })
        })
    }
}

/// The fence that whoever took the group last has.
pub(crate) fn generation(state: &State) -> Generation {
    Generation(state.generation)
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
