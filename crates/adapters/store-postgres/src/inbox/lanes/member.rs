//! A unit in a lane: its ports pass on to the leader what it asks for.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{AuditEntry, AuditWrite};
use domain::{AgentSessionId, EventId, Publication, Seq, StoreError, TenantId, Timestamp};
use inbox::{
    AgentSession, ClaimRecord, InboxWrite, Item, ItemFilter, ItemPage, ItemRange, LeaseKey, QueueFilter, Recipient, RecipientNumber,
    RecipientRow,
};
use tokio::sync::{mpsc, oneshot};

use super::{Lanes, Newcomer};
use crate::store::Shared;

/// Where an answer goes.
pub(super) type Answer<T> = oneshot::Sender<T>;

/// What units ask for.
pub(super) enum Call {
    Available {
        recipient: RecipientNumber,
        queues: QueueFilter,
        limit: usize,
        answer: Answer<Vec<Item>>,
    },
    Due {
        recipient: RecipientNumber,
        now: Timestamp,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
        answer: Answer<Vec<Item>>,
    },
    NextDue {
        recipient: RecipientNumber,
        answer: Answer<Option<Timestamp>>,
    },
    Claimed {
        recipient: RecipientNumber,
        most: u64,
        answer: Answer<u64>,
    },
    Find {
        recipient: RecipientNumber,
        events: Vec<EventId>,
        answer: Answer<Vec<Option<Item>>>,
    },
    Put {
        items: Vec<Item>,
        answer: Answer<()>,
    },
    Append {
        tenant: TenantId,
        publications: Vec<Publication>,
        answer: Answer<Vec<Seq>>,
    },
    Save {
        row: RecipientRow,
        answer: Answer<()>,
    },
    LeaseKey {
        tenant: TenantId,
        offered: LeaseKey,
        answer: Answer<LeaseKey>,
    },
    /// It is done, and waits for the commit.
    Done {
        outcome: Result<(), StoreError>,
        answer: Answer<Verdict>,
    },
}

/// What became of a unit.
pub(super) enum Verdict {
    Settled(Result<(), StoreError>),
    /// Nothing of it is kept: it runs again in a transaction of its own.
    Alone,
}

/// The transaction as a unit in a lane sees it.
pub(super) struct LaneTx {
    shared: Arc<Shared>,
    leader: Option<mpsc::Sender<Call>>,
    /// It asked for something that lanes have not.
    is_alone: bool,
}

impl LaneTx {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), leader: None, is_alone: false }
    }

    /// Hands over the unit's outcome, and waits for the commit.
    pub(super) async fn finish(&mut self, outcome: Result<(), StoreError>) -> Verdict {
        if self.is_alone {
            return Verdict::Alone;
        }
        let Some(leader) = self.leader.take() else { return Verdict::Settled(outcome) };
        let (answer, verdict) = oneshot::channel();
        if leader.send(Call::Done { outcome, answer }).await.is_err() {
            return Verdict::Alone;
        }
        verdict.await.unwrap_or(Verdict::Settled(Err(StoreError::InDoubt)))
    }

    /// Lanes have no such thing: the unit ends here, and runs again alone.
    fn leave<T>(&mut self) -> Result<T, StoreError> {
        self.is_alone = true;
        self.leader = None;
        Err(StoreError::Transient)
    }

    async fn ask<T>(&mut self, call: impl FnOnce(Answer<T>) -> Call + Send) -> Result<T, StoreError>
    where
        T: Send,
    {
        let (answer, answered) = oneshot::channel();
        let Some(leader) = self.leader.as_ref() else { return self.leave() };
        if leader.send(call(answer)).await.is_err() {
            return self.leave();
        }
        match answered.await {
            Ok(value) => Ok(value),
            Err(_) => self.leave(),
        }
    }
}

#[async_trait]
impl AuditWrite for LaneTx {
    async fn audit(&mut self, _tenant: &TenantId, _entry: &AuditEntry) -> Result<(), StoreError> {
        self.leave()
    }
}

#[async_trait]
impl InboxWrite for LaneTx {
    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    async fn recipient(&mut self, _recipient: &Recipient) -> Result<Option<RecipientRow>, StoreError> {
        self.leave()
    }

    async fn share_recipient(&mut self, recipient: &Recipient) -> Result<Option<RecipientRow>, StoreError> {
        if self.leader.is_some() {
            return self.leave();
        }
        let ((leader, calls), (row, told)) = (mpsc::channel(1), oneshot::channel());
        self.leader = Some(leader);
        Lanes::join(&self.shared, recipient, Newcomer { row, calls });
        match told.await {
            Ok(row) => Ok(row),
            Err(_) => self.leave(),
        }
    }

    async fn open_recipient(&mut self, _recipient: &Recipient) -> Result<RecipientRow, StoreError> {
        self.leave()
    }

    async fn save_recipient(&mut self, row: &RecipientRow) -> Result<(), StoreError> {
        let row = row.clone();
        self.ask(|answer| Call::Save { row, answer }).await
    }

    async fn available(&mut self, recipient: RecipientNumber, queues: &QueueFilter, limit: usize) -> Result<Vec<Item>, StoreError> {
        let queues = queues.clone();
        self.ask(|answer| Call::Available { recipient, queues, limit, answer }).await
    }

    async fn due_items(
        &mut self,
        recipient: RecipientNumber,
        now: Timestamp,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
    ) -> Result<Vec<Item>, StoreError> {
        self.ask(|answer| Call::Due { recipient, now, after, limit, answer }).await
    }

    async fn next_due_item(&mut self, recipient: RecipientNumber) -> Result<Option<Timestamp>, StoreError> {
        self.ask(|answer| Call::NextDue { recipient, answer }).await
    }

    async fn claimed(&mut self, recipient: RecipientNumber, most: u64) -> Result<u64, StoreError> {
        self.ask(|answer| Call::Claimed { recipient, most, answer }).await
    }

    async fn find(&mut self, recipient: RecipientNumber, events: &[EventId]) -> Result<Vec<Option<Item>>, StoreError> {
        let events = events.to_vec();
        self.ask(|answer| Call::Find { recipient, events, answer }).await
    }

    async fn matching(&mut self, _recipient: RecipientNumber, _filter: &ItemFilter, _range: ItemRange) -> Result<ItemPage, StoreError> {
        self.leave()
    }

    async fn put(&mut self, items: &[Item]) -> Result<(), StoreError> {
        let items = items.to_vec();
        self.ask(|answer| Call::Put { items, answer }).await
    }

    async fn append_inbox(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, StoreError> {
        let (tenant, publications) = (tenant.clone(), publications.to_vec());
        self.ask(|answer| Call::Append { tenant, publications, answer }).await
    }

    async fn lease_key(&mut self, tenant: &TenantId, offered: &LeaseKey) -> Result<LeaseKey, StoreError> {
        let (tenant, offered) = (tenant.clone(), offered.clone());
        self.ask(|answer| Call::LeaseKey { tenant, offered, answer }).await
    }

    /// What a key stands for is told to one unit after the other.
    async fn claim_record(&mut self, _recipient: RecipientNumber, _key: &str) -> Result<Option<ClaimRecord>, StoreError> {
        self.leave()
    }

    async fn put_claim_record(&mut self, _recipient: RecipientNumber, _key: &str, _record: &ClaimRecord) -> Result<(), StoreError> {
        self.leave()
    }

    async fn put_session(&mut self, _session: &AgentSession) -> Result<(), StoreError> {
        self.leave()
    }

    async fn touch_session(
        &mut self,
        _recipient: &Recipient,
        _id: &AgentSessionId,
        _last_seen: Option<Seq>,
        _is_active: bool,
    ) -> Result<bool, StoreError> {
        self.leave()
    }

    async fn prune_inboxes(
        &mut self,
        _ended_before: Timestamp,
        _records_before: Timestamp,
        _sessions_before: Timestamp,
        _limit: usize,
    ) -> Result<bool, StoreError> {
        self.leave()
    }
}
