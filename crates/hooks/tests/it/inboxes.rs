//! The inboxes of the store in memory: what hooks read of them.

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;
use domain::{AgentSessionId, EventId, QueueName, Seq, StoreError, TenantId, Timestamp};
use inbox::{
    AckState, AgentSession, Backlog, InboxPage, InboxStore, InboxTotals, InboxView, Item, ItemFilter, ItemPage, ItemRange, PollRange,
    QueueFilter, Recipient,
};

use crate::memory::{Memory, State};

fn view(state: &State, recipient: &Recipient) -> InboxView {
    let head = state.logs[&recipient.tenant].head();
    InboxView { row: state.rows.get(recipient).cloned(), epoch: head.epoch, floor: head.floor, log_head: head.seq }
}

fn of<'s>(state: &'s State, recipient: &'s Recipient) -> impl Iterator<Item = &'s Item> {
    state.items.iter().filter(move |((whose, _), _)| whose == recipient).map(|(_, item)| item)
}

#[async_trait]
impl InboxStore for Memory {
    async fn view(&self, recipient: &Recipient) -> Result<InboxView, StoreError> {
        Ok(self.read(|state| view(state, recipient)))
    }

    async fn poll(&self, recipient: &Recipient, range: &PollRange) -> Result<InboxPage, StoreError> {
        self.read(|state| {
            let mut items: Vec<Item> = of(state, recipient)
                .filter(|item| item.state == AckState::Available && item.ring_seq > range.after && range.queues.admits(&item.facts.queue))
                .cloned()
                .collect();
            items.sort_by_key(|item| item.ring_seq);
            items.truncate(range.limit);
            let next = items.last().map_or(range.after, |item| item.ring_seq);
            Ok(InboxPage { view: view(state, recipient), items, more: false, next, oldest: None })
        })
    }

    async fn backlog(&self, recipient: &Recipient, queues: &QueueFilter, _: Timestamp, most: u64) -> Result<Backlog, StoreError> {
        self.read(|state| {
            let count = |wanted: AckState| {
                of(state, recipient).filter(|item| item.state == wanted && queues.admits(&item.facts.queue)).count() as u64
            };
            Ok(Backlog { available: count(AckState::Available).min(most), claimed: count(AckState::Claimed), resting: 0, next_due: None })
        })
    }

    async fn claimable_queues(&self, recipient: &Recipient, except: &[QueueName], limit: usize) -> Result<Vec<QueueName>, StoreError> {
        self.read(|state| {
            let available = of(state, recipient).filter(|item| item.state == AckState::Available);
            let queues: BTreeSet<_> = available.map(|item| item.facts.queue.clone()).filter(|queue| !except.contains(queue)).collect();
            Ok(queues.into_iter().take(limit).collect())
        })
    }

    async fn items(&self, recipient: &Recipient, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError> {
        let items = self.read(|state| of(state, recipient).filter(|item| filter.matches(item)).take(range.limit).cloned().collect());
        Ok(ItemPage { items, next: None })
    }

    async fn item(&self, recipient: &Recipient, event: EventId) -> Result<Option<Item>, StoreError> {
        Ok(self.read(|state| state.items.get(&(recipient.clone(), event)).cloned()))
    }

    async fn envelopes(&self, _: &TenantId, _: &[(Seq, EventId)]) -> Result<Vec<Option<Bytes>>, StoreError> {
        panic!("hooks read no payload")
    }

    async fn due(&self, _: Timestamp, _: usize) -> Result<Vec<Recipient>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn session(&self, _: &TenantId, _: &AgentSessionId) -> Result<Option<AgentSession>, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn totals(&self, _: usize) -> Result<InboxTotals, StoreError> {
        Err(StoreError::Unavailable)
    }
}
