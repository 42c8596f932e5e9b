//! A transaction of the store in memory: a copy of the state.

use async_trait::async_trait;
use authz::{AuditEntry, AuditWrite};
use domain::{AgentSessionId, EventId, PrincipalId, Publication, Seq, StoreError, TenantId, Timestamp};
use inbox::{
    AckState, AgentSession, ClaimRecord, InboxWrite, Item, ItemFilter, ItemPage, ItemRange, LeaseKey, QueueFilter, Recipient,
    RecipientNumber, RecipientRow,
};

use crate::memory::State;

pub(crate) struct Tx {
    pub(crate) state: State,
    pub(crate) now: Timestamp,
    pub(crate) failing: Option<PrincipalId>,
}

#[async_trait]
impl AuditWrite for Tx {
    async fn audit(&mut self, _: &TenantId, entry: &AuditEntry) -> Result<(), StoreError> {
        self.state.audit.push(entry.clone());
        Ok(())
    }
}

#[async_trait]
impl InboxWrite for Tx {
    fn now(&self) -> Timestamp {
        self.now
    }

    async fn recipient(&mut self, recipient: &Recipient) -> Result<Option<RecipientRow>, StoreError> {
        if self.failing.as_ref() == Some(&recipient.agent) {
            return Err(StoreError::Unavailable);
        }
        Ok(self.state.rows.get(recipient).cloned())
    }

    async fn open_recipient(&mut self, recipient: &Recipient) -> Result<RecipientRow, StoreError> {
        Ok(self.state.open(recipient).clone())
    }

    async fn save_recipient(&mut self, row: &RecipientRow) -> Result<(), StoreError> {
        let stored = self.state.rows.get_mut(&row.recipient).expect("the row was read in this transaction");
        assert!(row.head >= stored.head, "a head never falls");
        *stored = row.clone();
        Ok(())
    }

    async fn available(&mut self, recipient: RecipientNumber, queues: &QueueFilter, limit: usize) -> Result<Vec<Item>, StoreError> {
        let wanted = self.state.of(recipient).filter(|item| item.state == AckState::Available && queues.admits(&item.facts.queue));
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
        let mut items: Vec<Item> = self.state.of(recipient).filter(is_wanted).cloned().collect();
        items.sort_by_key(place);
        items.truncate(limit);
        Ok(items)
    }

    async fn next_due_item(&mut self, recipient: RecipientNumber) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state.of(recipient).filter_map(Item::due_at).min())
    }

    async fn claimed(&mut self, recipient: RecipientNumber, most: u64) -> Result<u64, StoreError> {
        Ok((self.state.of(recipient).filter(|item| item.state == AckState::Claimed).count() as u64).min(most))
    }

    async fn find(&mut self, recipient: RecipientNumber, events: &[EventId]) -> Result<Vec<Option<Item>>, StoreError> {
        Ok(events.iter().map(|event| self.state.items.get(&(recipient, *event)).cloned()).collect())
    }

    async fn matching(&mut self, recipient: RecipientNumber, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError> {
        Ok(self.state.page(recipient, range, |item| !item.state.is_ended() && filter.matches(item)))
    }

    async fn put(&mut self, items: &[Item]) -> Result<(), StoreError> {
        for item in items {
            let stored = self.state.items.get_mut(&(item.facts.recipient, item.facts.event_id)).expect("the item was read");
            assert!(!stored.state.is_ended(), "an ended item never changes");
            assert_eq!(stored.facts, item.facts, "what is fixed never changes");
            assert!(item.generation >= stored.generation && item.ring_seq >= stored.ring_seq, "nothing runs backwards");
            assert_eq!(item.state == AckState::Claimed, item.lease.is_some(), "a lease exactly while it is claimed");
            assert_eq!(item.state == AckState::RetryScheduled, item.next_retry_at.is_some(), "a retry exactly while it rests");
            assert_eq!(item.state.is_ended(), item.ended_at.is_some(), "an end exactly when it has ended");
            *stored = item.clone();
        }
        Ok(())
    }

    async fn append_inbox(&mut self, _: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, StoreError> {
        Ok(self.state.append(publications))
    }

    async fn lease_key(&mut self, _: &TenantId, offered: &LeaseKey) -> Result<LeaseKey, StoreError> {
        Ok(self.state.lease_key.get_or_insert_with(|| offered.clone()).clone())
    }

    async fn claim_record(&mut self, recipient: RecipientNumber, key: &str) -> Result<Option<ClaimRecord>, StoreError> {
        Ok(self.state.records.get(&(recipient, key.to_owned())).cloned())
    }

    async fn put_claim_record(&mut self, recipient: RecipientNumber, key: &str, record: &ClaimRecord) -> Result<(), StoreError> {
        self.state.records.insert((recipient, key.to_owned()), record.clone());
        Ok(())
    }

    async fn put_session(&mut self, session: &AgentSession) -> Result<(), StoreError> {
        match self.state.sessions.get(&session.id) {
            Some(stored) if stored.recipient != session.recipient => Err(StoreError::Conflict("the session is another inbox's")),
            _ => {
                self.state.sessions.insert(session.id.clone(), session.clone());
                Ok(())
            }
        }
    }

    async fn touch_session(
        &mut self,
        recipient: &Recipient,
        id: &AgentSessionId,
        last_seen: Option<Seq>,
        is_active: bool,
    ) -> Result<bool, StoreError> {
        let now = self.now;
        let Some(session) = self.state.sessions.get_mut(id).filter(|session| session.recipient == *recipient) else { return Ok(false) };
        session.heartbeat_at = now;
        session.last_seen = last_seen.unwrap_or(session.last_seen);
        session.is_active = is_active;
        Ok(true)
    }

    async fn prune_inboxes(
        &mut self,
        ended_before: Timestamp,
        records_before: Timestamp,
        sessions_before: Timestamp,
        limit: usize,
    ) -> Result<bool, StoreError> {
        let is_old = |item: &&Item| item.ended_at.is_some_and(|at| at < ended_before && item.facts.created_at < ended_before);
        let old: Vec<_> = self.state.items.values().filter(is_old).map(|item| (item.facts.recipient, item.facts.event_id)).collect();
        for key in old.iter().take(limit) {
            self.state.items.remove(key);
        }
        self.state.records.retain(|_, record| record.created_at >= records_before);
        self.state.sessions.retain(|_, session| session.heartbeat_at >= sessions_before);
        Ok(old.len() > limit)
    }
}
