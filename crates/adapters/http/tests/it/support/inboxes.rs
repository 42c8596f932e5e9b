//! Inboxes in memory: each read sees one committed state, each unit works on a copy that becomes the state when it commits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use authz::{AuditEntry, AuditWrite};
use bytes::Bytes;
use domain::{
    Actor, AgentSessionId, Audience, Clock, EnvelopeParts, EventId, EventOrigin, EventType, IdGenerator, PayloadRef, PrincipalId, Priority,
    Publication, QueueName, Seq, StoreError, SystemClock, SystemIds, TenantId, Timestamp, Transactions, Unit, Work, WorkFor, encode_body,
};
use inbox::{
    AckState, AgentSession, Backlog, Bells, ClaimRecord, InboxPage, InboxStore, InboxTotals, InboxTx, InboxView, InboxWrite, Item,
    ItemFilter, ItemPage, ItemRange, LeaseKey, Policy, PollRange, Presence, QueueFilter, Recipient, RecipientNumber, RecipientRow, Tails,
};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use super::Memory;

/// Everything that is stored of inboxes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) recipients: BTreeMap<Recipient, RecipientRow>,
    pub(crate) items: BTreeMap<(RecipientNumber, EventId), Item>,
    pub(crate) audit: Vec<AuditEntry>,
    envelopes: HashMap<EventId, Bytes>,
    lease_key: Option<LeaseKey>,
    records: HashMap<(RecipientNumber, String), ClaimRecord>,
    pub(crate) sessions: BTreeMap<AgentSessionId, AgentSession>,
}

impl Rows {
    fn open(&mut self, recipient: &Recipient) -> &mut RecipientRow {
        let number = RecipientNumber::new(i64::try_from(self.recipients.len()).unwrap() + 1);
        self.recipients.entry(recipient.clone()).or_insert_with(|| RecipientRow {
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

    fn of(&self, number: RecipientNumber) -> impl Iterator<Item = &Item> {
        self.items.values().filter(move |item| item.facts.recipient == number)
    }

    fn current(&self, recipient: &Recipient) -> Vec<&Item> {
        let Some(row) = self.recipients.get(recipient) else { return Vec::new() };
        self.of(row.number).filter(|item| item.state.is_current()).collect()
    }
}

/// The store, with the bells that hang on it.
pub(crate) struct Inboxes {
    log: Arc<Memory>,
    rows: Mutex<Rows>,
    writer: tokio::sync::Mutex<()>,
    bells: OnceLock<Arc<Bells>>,
    clock: SystemClock,
    /// Envelopes are read with a permit: a test that takes it stops claims between their commit and their answer.
    pub(crate) envelopes: Semaphore,
}

impl Inboxes {
    pub(crate) fn new(log: Arc<Memory>) -> Arc<Self> {
        Arc::new(Self {
            log,
            rows: Mutex::default(),
            writer: tokio::sync::Mutex::default(),
            bells: OnceLock::new(),
            clock: SystemClock::new(),
            envelopes: Semaphore::new(1),
        })
    }

    pub(crate) fn hang(&self, bells: &Arc<Bells>) {
        assert!(self.bells.set(Arc::clone(bells)).is_ok());
    }

    /// The committed state.
    pub(crate) fn rows(&self) -> Rows {
        self.rows.lock().unwrap().clone()
    }

    pub(crate) fn recipient(agent: &str) -> Recipient {
        Recipient { tenant: Memory::tenant(), agent: PrincipalId::parse(agent).unwrap() }
    }

    /// Where an item of `alpha` stands.
    pub(crate) fn item(&self, event: &str) -> Item {
        let rows = self.rows();
        let number = rows.recipients[&Self::recipient("alpha")].number;
        rows.items[&(number, event.parse().unwrap())].clone()
    }

    /// Publishes work for `alpha`; answers the event.
    pub(crate) async fn publish(&self, queue: &str, payload: &str) -> String {
        let _writer = self.writer.lock().await;
        let (now, id) = (self.clock.now(), EventId::new(SystemIds.uuid()));
        let recipient = Self::recipient("alpha");
        let who = WorkFor { agent: recipient.agent.clone(), queue: QueueName::parse(queue).unwrap() };
        let work = Work {
            recipients: vec![who.clone()],
            priority: Priority::High,
            kind: None,
            source: None,
            summary: "something \"to do\"".to_owned(),
            available_at: now,
            claim_key: now,
            expires_at: None,
            max_attempts: 2,
        };
        let event_type = EventType::parse("task.created").unwrap();
        let payload = RawValue::from_string(payload.to_owned()).unwrap();
        let correlation = BTreeMap::from([("meeting_room_id".to_owned(), "room_7".to_owned())]);
        let reference = PayloadRef { kind: "meeting_room_message".to_owned(), id: "920155".to_owned() };
        let actor = Actor::server();
        let parts = EnvelopeParts {
            correlation: Some(&correlation),
            payload_ref: Some(&reference),
            payload: Some(&payload),
            ..EnvelopeParts::new(id, &event_type, now, &actor)
        };
        let body = encode_body(&parts).unwrap();
        let publication = Publication {
            id,
            event_type: event_type.clone(),
            channel: None,
            audience: Audience::new(std::slice::from_ref(&who.agent)),
            origin: EventOrigin::Work,
            created_at: now,
            body: body.clone(),
            deduplication: None,
            work: None,
        };
        // Rows first: whoever is rung by the log finds them.
        let seq = self.log.state().head.seq.next();
        {
            let mut rows = self.rows.lock().unwrap();
            rows.envelopes.insert(id, body.clone());
            let row = rows.open(&recipient);
            let item = Item::new(row.number, &who, &work, id, seq, &event_type, None, now, body.len());
            row.head = seq;
            rows.items.insert((item.facts.recipient, id), item);
        }
        self.append(std::slice::from_ref(&publication));
        id.to_string()
    }

    fn append(&self, publications: &[Publication]) {
        let from = self.log.state().events.len();
        self.log.append_all(publications);
        let events = self.log.state().events.split_off(from);
        self.log.state().events.extend(events.iter().cloned());
        if let Some(bells) = self.bells.get() {
            bells.observe(&Memory::tenant(), &events);
        }
    }

    fn view(&self, rows: &Rows, recipient: &Recipient) -> InboxView {
        let head = self.log.state().head;
        InboxView { row: rows.recipients.get(recipient).cloned(), epoch: head.epoch, floor: head.floor, log_head: head.seq }
    }
}

#[async_trait]
impl Transactions<dyn InboxTx> for Inboxes {
    async fn run(&self, _: &'static str, mut unit: Unit<dyn InboxTx>) -> Result<(), StoreError> {
        let _writer = self.writer.lock().await;
        if let Some(error) = self.log.state().broken_writes.clone() {
            return Err(error);
        }
        let mut tx = Tx { rows: self.rows(), now: self.clock.now(), head: self.log.state().head.seq, appended: Vec::new() };
        unit(&mut tx).await?;
        *self.rows.lock().unwrap() = tx.rows;
        self.append(&tx.appended);
        Ok(())
    }
}

#[async_trait]
impl Tails for Inboxes {
    async fn keep(&self, _: &TenantId) -> Result<Box<dyn Send + Sync>, StoreError> {
        Ok(Box::new(()))
    }
}

/// A page of what matches.
fn page<'r>(wanted: impl Iterator<Item = &'r Item>, range: ItemRange) -> ItemPage {
    let mut items: Vec<Item> =
        wanted.filter(|item| range.after.is_none_or(|after| item.facts.event_id > after)).take(range.limit + 1).cloned().collect();
    let has_more = items.len() > range.limit;
    items.truncate(range.limit);
    ItemPage { next: items.last().filter(|_| has_more).map(|item| item.facts.event_id), items }
}

#[async_trait]
impl InboxStore for Inboxes {
    async fn view(&self, recipient: &Recipient) -> Result<InboxView, StoreError> {
        Ok(self.view(&self.rows(), recipient))
    }

    async fn poll(&self, recipient: &Recipient, range: &PollRange) -> Result<InboxPage, StoreError> {
        let rows = self.rows();
        let mut current = rows.current(recipient);
        current.sort_by_key(|item| item.ring_seq);
        let oldest = current.first().map(|item| item.ring_seq);
        let wanted = current.into_iter().filter(|item| {
            item.ring_seq > range.after
                && (!range.claimable_only || item.state == AckState::Available)
                && range.queues.admits(&item.facts.queue)
        });
        let mut items: Vec<Item> = wanted.cloned().collect();
        let more = items.len() > range.limit;
        items.truncate(range.limit);
        let next = items.last().map_or(range.after, |item| item.ring_seq);
        Ok(InboxPage { view: self.view(&rows, recipient), items, more, next, oldest })
    }

    async fn backlog(&self, recipient: &Recipient, queues: &QueueFilter, now: Timestamp, _most: u64) -> Result<Backlog, StoreError> {
        let rows = self.rows();
        let mut backlog = Backlog::default();
        for item in rows.current(recipient).into_iter().filter(|item| queues.admits(&item.facts.queue)) {
            match (item.state, item.next_retry_at) {
                (AckState::Claimed, _) => backlog.claimed += 1,
                (AckState::RetryScheduled, Some(at)) if at > now => {
                    backlog.resting += 1;
                    backlog.next_due = [backlog.next_due, Some(at)].into_iter().flatten().min();
                }
                _ => backlog.available += 1,
            }
        }
        Ok(backlog)
    }

    async fn claimable_queues(&self, recipient: &Recipient, except: &[QueueName], limit: usize) -> Result<Vec<QueueName>, StoreError> {
        let rows = self.rows();
        let available = rows.current(recipient).into_iter().filter(|item| item.state == AckState::Available);
        let queues: BTreeSet<_> = available.map(|item| item.facts.queue.clone()).filter(|queue| !except.contains(queue)).collect();
        Ok(queues.into_iter().take(limit).collect())
    }

    async fn items(&self, recipient: &Recipient, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError> {
        let rows = self.rows();
        let Some(row) = rows.recipients.get(recipient) else { return Ok(ItemPage::default()) };
        Ok(page(rows.of(row.number).filter(|item| filter.matches(item)), range))
    }

    async fn item(&self, recipient: &Recipient, event: EventId) -> Result<Option<Item>, StoreError> {
        let rows = self.rows();
        Ok(rows.recipients.get(recipient).and_then(|row| rows.items.get(&(row.number, event)).cloned()))
    }

    async fn envelopes(&self, _: &TenantId, events: &[(Seq, EventId)]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let _permit = self.envelopes.acquire().await.unwrap();
        let rows = self.rows();
        Ok(events.iter().map(|(_, id)| rows.envelopes.get(id).cloned()).collect())
    }

    async fn due(&self, _now: Timestamp, _limit: usize) -> Result<Vec<Recipient>, StoreError> {
        Ok(Vec::new())
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    async fn session(&self, tenant: &TenantId, id: &AgentSessionId) -> Result<Option<AgentSession>, StoreError> {
        Ok(self.rows().sessions.get(id).filter(|session| session.recipient.tenant == *tenant).cloned())
    }

    async fn totals(&self, _: usize) -> Result<InboxTotals, StoreError> {
        Ok(InboxTotals::default())
    }
}

/// A transaction: a copy of the state.
struct Tx {
    rows: Rows,
    now: Timestamp,
    head: Seq,
    appended: Vec<Publication>,
}

#[async_trait]
impl AuditWrite for Tx {
    async fn audit(&mut self, _: &TenantId, entry: &AuditEntry) -> Result<(), StoreError> {
        self.rows.audit.push(entry.clone());
        Ok(())
    }
}

#[async_trait]
impl InboxWrite for Tx {
    fn now(&self) -> Timestamp {
        self.now
    }

    async fn recipient(&mut self, recipient: &Recipient) -> Result<Option<RecipientRow>, StoreError> {
        Ok(self.rows.recipients.get(recipient).cloned())
    }

    async fn open_recipient(&mut self, recipient: &Recipient) -> Result<RecipientRow, StoreError> {
        Ok(self.rows.open(recipient).clone())
    }

    async fn save_recipient(&mut self, row: &RecipientRow) -> Result<(), StoreError> {
        self.rows.recipients.insert(row.recipient.clone(), row.clone());
        Ok(())
    }

    async fn available(&mut self, recipient: RecipientNumber, queues: &QueueFilter, limit: usize) -> Result<Vec<Item>, StoreError> {
        let wanted = self.rows.of(recipient).filter(|item| item.state == AckState::Available && queues.admits(&item.facts.queue));
        let mut items: Vec<Item> = wanted.cloned().collect();
        items.sort_by_key(|item| (item.claim_key, item.facts.event_id));
        items.truncate(limit);
        Ok(items)
    }

    async fn due_items(
        &mut self,
        recipient: RecipientNumber,
        now: Timestamp,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
    ) -> Result<Vec<Item>, StoreError> {
        let place = |item: &Item| item.due_at().map(|due| (due, item.facts.event_id));
        let is_wanted = |item: &&Item| place(item).is_some_and(|place| place.0 <= now && after.is_none_or(|after| place > after));
        let mut items: Vec<Item> = self.rows.of(recipient).filter(is_wanted).cloned().collect();
        items.sort_by_key(place);
        items.truncate(limit);
        Ok(items)
    }

    async fn next_due_item(&mut self, recipient: RecipientNumber) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.rows.of(recipient).filter_map(Item::due_at).min())
    }

    async fn claimed(&mut self, recipient: RecipientNumber, most: u64) -> Result<u64, StoreError> {
        Ok((self.rows.of(recipient).filter(|item| item.state == AckState::Claimed).count() as u64).min(most))
    }

    async fn find(&mut self, recipient: RecipientNumber, events: &[EventId]) -> Result<Vec<Option<Item>>, StoreError> {
        Ok(events.iter().map(|event| self.rows.items.get(&(recipient, *event)).cloned()).collect())
    }

    async fn matching(&mut self, recipient: RecipientNumber, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError> {
        Ok(page(self.rows.of(recipient).filter(|item| !item.state.is_ended() && filter.matches(item)), range))
    }

    async fn put(&mut self, items: &[Item]) -> Result<(), StoreError> {
        for item in items {
            self.rows.items.insert((item.facts.recipient, item.facts.event_id), item.clone());
        }
        Ok(())
    }

    async fn append_inbox(&mut self, _: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, StoreError> {
        let append = |publication: &Publication| {
            self.appended.push(publication.clone());
            self.head = self.head.next();
            self.head
        };
        Ok(publications.iter().map(append).collect())
    }

    async fn lease_key(&mut self, _: &TenantId, offered: &LeaseKey) -> Result<LeaseKey, StoreError> {
        Ok(self.rows.lease_key.get_or_insert_with(|| offered.clone()).clone())
    }

    async fn claim_record(&mut self, recipient: RecipientNumber, key: &str) -> Result<Option<ClaimRecord>, StoreError> {
        Ok(self.rows.records.get(&(recipient, key.to_owned())).cloned())
    }

    async fn put_claim_record(&mut self, recipient: RecipientNumber, key: &str, record: &ClaimRecord) -> Result<(), StoreError> {
        self.rows.records.insert((recipient, key.to_owned()), record.clone());
        Ok(())
    }

    async fn put_session(&mut self, session: &AgentSession) -> Result<(), StoreError> {
        self.rows.sessions.insert(session.id.clone(), session.clone());
        Ok(())
    }

    async fn touch_session(
        &mut self,
        recipient: &Recipient,
        id: &AgentSessionId,
        last_seen: Option<Seq>,
        is_active: bool,
    ) -> Result<bool, StoreError> {
        let now = self.now;
        let Some(session) = self.rows.sessions.get_mut(id).filter(|session| session.recipient == *recipient) else { return Ok(false) };
        session.heartbeat_at = now;
        session.last_seen = last_seen.unwrap_or(session.last_seen);
        session.is_active = is_active;
        Ok(true)
    }

    async fn prune_inboxes(&mut self, _: Timestamp, _: Timestamp, _: Timestamp, _: usize) -> Result<bool, StoreError> {
        Ok(false)
    }
}
