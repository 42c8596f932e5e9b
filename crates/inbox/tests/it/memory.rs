//! A store in memory that keeps to the documentation of the ports: each read sees one committed state, each unit works on a copy that becomes
//! the state when it commits. Every unit runs twice, the first time for nothing, as after a passing failure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use authz::AuditEntry;
use bytes::Bytes;
use domain::{
    AgentSessionId, Audience, Clock, Event, EventId, EventOrigin, EventType, IdGenerator, PrincipalId, Priority, Publication, QueueName,
    Seq, StoreError, SyncEpoch, TenantId, Timestamp, Transactions, Unit, Work, WorkFor,
};
use inbox::{
    AckState, AgentSession, Backlog, Bells, ClaimRecord, InboxPage, InboxStore, InboxSums, InboxTotals, InboxTx, InboxView, Item,
    ItemFilter, ItemPage, ItemRange, LeaseKey, Policy, PollRange, Presence, QueueFilter, Recipient, RecipientNumber, RecipientRow, Tails,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::memory_tx::Tx;

pub(crate) const START: Timestamp = Timestamp::from_micros(1_000_000_000_000);

pub(crate) fn tenant() -> TenantId {
    TenantId::parse("default").unwrap()
}

pub(crate) fn epoch() -> SyncEpoch {
    SyncEpoch::new(Uuid::from_u128(77))
}

pub(crate) fn recipient(agent: &str) -> Recipient {
    Recipient { tenant: tenant(), agent: PrincipalId::parse(agent).unwrap() }
}

/// Follows tokio's time, which tests stop and move.
#[derive(Debug)]
pub(crate) struct TestClock(Instant);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

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

/// Everything that is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) floor: Seq,
    pub(crate) log: Vec<Publication>,
    pub(crate) rows: BTreeMap<Recipient, RecipientRow>,
    pub(crate) items: BTreeMap<(RecipientNumber, EventId), Item>,
    pub(crate) lease_key: Option<LeaseKey>,
    pub(crate) records: HashMap<(RecipientNumber, String), ClaimRecord>,
    pub(crate) sessions: BTreeMap<AgentSessionId, AgentSession>,
    pub(crate) audit: Vec<AuditEntry>,
}

impl State {
    pub(crate) fn log_head(&self) -> Seq {
        Seq::new(self.log.len() as u64).unwrap()
    }

    pub(crate) fn append(&mut self, publications: &[Publication]) -> Vec<Seq> {
        let append = |publication: &Publication| {
            self.log.push(publication.clone());
            Seq::new(self.log.len() as u64).unwrap()
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
            paused_queues: BTreeSet::new(),
            policy: Policy::default(),
            active_session: None,
        })
    }

    pub(crate) fn of(&self, number: RecipientNumber) -> impl Iterator<Item = &Item> {
        self.items.values().filter(move |item| item.facts.recipient == number)
    }

    /// A part of the inbox's items that are `wanted`, by event.
    pub(crate) fn page(&self, number: RecipientNumber, range: ItemRange, wanted: impl Fn(&Item) -> bool) -> ItemPage {
        let mut page = ItemPage::default();
        let rest = self.of(number).filter(|item| range.after.is_none_or(|after| item.facts.event_id > after));
        let mut last = None;
        for (looked, item) in rest.enumerate() {
            if looked >= range.scan_max || (wanted(item) && page.items.len() >= range.limit) {
                page.next = last;
                break;
            }
            last = Some(item.facts.event_id);
            if wanted(item) {
                page.items.push(item.clone());
            }
        }
        page
    }

    fn current(&self, recipient: &Recipient) -> Vec<&Item> {
        let Some(row) = self.rows.get(recipient) else { return Vec::new() };
        self.of(row.number).filter(|item| item.state.is_current()).collect()
    }

    fn view(&self, recipient: &Recipient) -> InboxView {
        InboxView { row: self.rows.get(recipient).cloned(), epoch: epoch(), floor: self.floor, log_head: self.log_head() }
    }
}

/// A publish with one recipient.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) queue: &'static str,
    pub(crate) priority: Priority,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) max_attempts: u32,
    pub(crate) bytes: usize,
}

impl Default for New {
    fn default() -> Self {
        Self { queue: "inbox", priority: Priority::Normal, expires_in: None, max_attempts: 5, bytes: 40 }
    }
}

/// The store, with the tail and the bells that hang on it.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) clock: Arc<TestClock>,
    pub(crate) ids: Arc<Counting>,
    state: Mutex<State>,
    writer: tokio::sync::Mutex<()>,
    pub(crate) bells: OnceLock<Arc<Bells>>,
    /// Tails that are kept; nothing rings without one.
    pub(crate) tails: Arc<AtomicUsize>,
    /// Drops every hint.
    pub(crate) is_deaf: AtomicBool,
    /// Units of this agent fail.
    pub(crate) failing: Mutex<Option<PrincipalId>>,
    /// Envelopes cannot be read.
    pub(crate) envelopes_fail: AtomicBool,
    /// Units that were run.
    pub(crate) units: AtomicUsize,
    /// Each look at the store takes its time: its caller waits once.
    pub(crate) is_slow: AtomicBool,
    /// Looks fail.
    pub(crate) looks_fail: AtomicBool,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            clock: TestClock::new(),
            ids: Arc::default(),
            state: Mutex::default(),
            writer: tokio::sync::Mutex::default(),
            bells: OnceLock::new(),
            tails: Arc::default(),
            is_deaf: AtomicBool::new(false),
            failing: Mutex::default(),
            envelopes_fail: AtomicBool::new(false),
            units: AtomicUsize::new(0),
            is_slow: AtomicBool::new(false),
            looks_fail: AtomicBool::new(false),
        })
    }

    /// The same rows and the same time, for another process.
    pub(crate) fn reopened(&self) -> Arc<Self> {
        let (state, clock, ids) = (self.state(), Arc::clone(&self.clock), Arc::clone(&self.ids));
        let mut memory = Arc::into_inner(Self::new()).unwrap();
        (memory.state, memory.clock, memory.ids) = (Mutex::new(state), clock, ids);
        Arc::new(memory)
    }

    /// The committed state, as a look at the store gets it.
    async fn look(&self) -> Result<State, StoreError> {
        if self.is_slow.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        if self.looks_fail.load(Ordering::SeqCst) { Err(StoreError::Unavailable) } else { Ok(self.state()) }
    }

    /// The committed state.
    pub(crate) fn state(&self) -> State {
        self.state.lock().unwrap().clone()
    }

    /// Changes the committed state past every rule.
    pub(crate) fn edit(&self, edit: impl FnOnce(&mut State)) {
        edit(&mut self.state.lock().unwrap());
    }

    fn commit(&self, state: State) {
        let news = {
            let mut now = self.state.lock().unwrap();
            let from = now.log.len();
            *now = state;
            let number = |place: usize| Seq::new(place as u64 + 1).unwrap();
            now.log.iter().enumerate().skip(from).map(|(place, row)| Arc::new(event(number(place), row))).collect::<Vec<_>>()
        };
        if self.tails.load(Ordering::SeqCst) > 0
            && !self.is_deaf.load(Ordering::SeqCst)
            && let Some(bells) = self.bells.get()
        {
            bells.observe(&tenant(), &news);
        }
    }

    /// Publishes an event with one recipient, as the store's publish does.
    pub(crate) async fn publish(&self, agent: &str, new: New) -> EventId {
        let _writer = self.writer.lock().await;
        let (mut state, now, id) = (self.state(), self.clock.now(), EventId::new(self.ids.uuid()));
        let who = WorkFor { agent: PrincipalId::parse(agent).unwrap(), queue: QueueName::parse(new.queue).unwrap() };
        let work = Work {
            recipients: vec![who.clone()],
            priority: new.priority,
            kind: None,
            source: None,
            summary: "something to do".to_owned(),
            available_at: now,
            claim_key: inbox::Rules::default().claim_key(now, new.priority),
            expires_at: new.expires_in.map(|time| now.plus(time)),
            max_attempts: new.max_attempts,
        };
        let event_type = EventType::parse("task.created").unwrap();
        let publication = Publication {
            id,
            event_type: event_type.clone(),
            channel: None,
            audience: Audience::new(std::slice::from_ref(&who.agent)),
            origin: EventOrigin::Work,
            created_at: now,
            body: Bytes::from(vec![b'x'; new.bytes]),
            deduplication: None,
            work: Some(Arc::new(work.clone())),
        };
        let seq = state.append(&[publication])[0];
        let row = state.open(&recipient(agent));
        let item = Item::new(row.number, &who, &work, id, seq, &event_type, None, now, new.bytes);
        row.head = seq;
        row.look_at(item.due_at());
        state.items.insert((item.facts.recipient, id), item);
        self.commit(state);
        id
    }
}

fn event(seq: Seq, row: &Publication) -> Event {
    let (event_type, audience) = (row.event_type.clone(), row.audience.clone());
    Event::new(seq, row.id, event_type, row.channel.clone(), audience, row.origin, row.created_at, row.body.clone())
}

#[async_trait]
impl Transactions<dyn InboxTx> for Memory {
    async fn run(&self, _: &'static str, mut unit: Unit<dyn InboxTx>) -> Result<(), StoreError> {
        if self.is_slow.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        let _writer = self.writer.lock().await;
        self.units.fetch_add(1, Ordering::SeqCst);
        let failing = self.failing.lock().unwrap().clone();
        let begin = || Tx { state: self.state(), now: self.clock.now(), failing: failing.clone() };
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
        struct Kept(Arc<AtomicUsize>);
        impl Drop for Kept {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.tails.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Kept(Arc::clone(&self.tails))))
    }
}

#[async_trait]
impl InboxStore for Memory {
    async fn view(&self, recipient: &Recipient) -> Result<InboxView, StoreError> {
        Ok(self.look().await?.view(recipient))
    }

    async fn poll(&self, recipient: &Recipient, range: &PollRange) -> Result<InboxPage, StoreError> {
        let state = self.look().await?;
        let mut current = state.current(recipient);
        current.sort_by_key(|item| item.ring_seq);
        let oldest = current.first().map(|item| item.ring_seq);
        let (mut items, mut more, mut next) = (Vec::new(), false, range.after);
        for (looked, item) in current.into_iter().filter(|item| item.ring_seq > range.after).enumerate() {
            let is_wanted = (!range.claimable_only || item.state == AckState::Available) && range.queues.admits(&item.facts.queue);
            more = looked >= range.scan_max || (is_wanted && items.len() >= range.limit);
            if more {
                break;
            }
            next = item.ring_seq;
            if is_wanted {
                items.push(Item { history: Vec::new(), ..item.clone() });
            }
        }
        if !more || items.len() >= range.limit {
            next = items.last().map_or(range.after, |item| item.ring_seq);
        }
        Ok(InboxPage { view: state.view(recipient), items, more, next, oldest })
    }

    async fn backlog(&self, recipient: &Recipient, queues: &QueueFilter, now: Timestamp, most: u64) -> Result<Backlog, StoreError> {
        let state = self.look().await?;
        let mut backlog = Backlog::default();
        for item in state.current(recipient).into_iter().filter(|item| queues.admits(&item.facts.queue)) {
            match (item.state, item.next_retry_at) {
                (AckState::Claimed, _) => backlog.claimed += 1,
                (AckState::RetryScheduled, Some(at)) if at > now => {
                    backlog.resting += 1;
                    backlog.next_due = [backlog.next_due, Some(at)].into_iter().flatten().min();
                }
                _ => backlog.available += 1,
            }
        }
        for count in [&mut backlog.available, &mut backlog.claimed, &mut backlog.resting] {
            *count = (*count).min(most);
        }
        Ok(backlog)
    }

    async fn claimable_queues(&self, recipient: &Recipient, except: &[QueueName], limit: usize) -> Result<Vec<QueueName>, StoreError> {
        let state = self.look().await?;
        let available = state.current(recipient).into_iter().filter(|item| item.state == AckState::Available);
        let queues: BTreeSet<_> = available.map(|item| item.facts.queue.clone()).filter(|queue| !except.contains(queue)).collect();
        Ok(queues.into_iter().take(limit).collect())
    }

    async fn items(&self, recipient: &Recipient, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError> {
        let state = self.look().await?;
        let Some(row) = state.rows.get(recipient) else { return Ok(ItemPage::default()) };
        Ok(state.page(row.number, range, |item| filter.matches(item)))
    }

    async fn item(&self, recipient: &Recipient, event: EventId) -> Result<Option<Item>, StoreError> {
        let state = self.state();
        Ok(state.rows.get(recipient).and_then(|row| state.items.get(&(row.number, event)).cloned()))
    }

    async fn envelopes(&self, _: &TenantId, events: &[(Seq, EventId)]) -> Result<Vec<Option<Bytes>>, StoreError> {
        if self.envelopes_fail.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable);
        }
        let state = self.state();
        let row = |seq: Seq, id: EventId| state.log.get(seq.previous().get() as usize).filter(|row| row.id == id);
        Ok(events.iter().map(|(seq, id)| row(*seq, *id).map(|row| row.body.clone())).collect())
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Recipient>, StoreError> {
        let state = self.state();
        let mut due: Vec<_> = state.rows.values().filter(|row| row.next_due.is_some_and(|due| due <= now)).collect();
        due.sort_by_key(|row| row.next_due);
        Ok(due.into_iter().take(limit).map(|row| row.recipient.clone()).collect())
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state().rows.values().filter_map(|row| row.next_due).min())
    }

    async fn session(&self, tenant: &TenantId, id: &AgentSessionId) -> Result<Option<AgentSession>, StoreError> {
        Ok(self.state().sessions.get(id).filter(|session| session.recipient.tenant == *tenant).cloned())
    }

    async fn totals(&self, _: usize) -> Result<InboxTotals, StoreError> {
        let state = self.state();
        let count = |wanted: fn(AckState) -> bool| state.items.values().filter(|item| wanted(item.state)).count() as u64;
        let all = InboxSums {
            current: count(AckState::is_current),
            dead_letters: count(|state| state == AckState::DeadLetter),
            quarantined: count(|state| state == AckState::Quarantined),
            oldest: state.items.values().filter(|item| item.state.is_current()).map(|item| item.facts.created_at).min(),
            head: state.rows.values().map(|row| row.head).max().unwrap_or_default(),
        };
        Ok(InboxTotals { all, tenants: vec![(tenant(), all)] })
    }
}
