//! Inboxes.

#![expect(missing_docs, reason = "the names say it; nobody but a case reads them")]

pub(crate) mod deliver;
pub(crate) mod gone;
pub(crate) mod kept;
pub(crate) mod list;
pub(crate) mod model;
pub(crate) mod records;
pub(crate) mod select;
pub(crate) mod upkeep;

pub use list::range as poll_range;

use std::sync::Arc;
use std::time::Duration;

use domain::{
    Audience, BoxFuture, EventId, EventOrigin, PrincipalId, Priority, Publication, QueueName, Seq, StoreError, Timestamp, Work, WorkFor,
    run_tx,
};
use inbox::{AckResult, InboxTx, Item, ItemFilter, ItemRange, LeaseHash, QueueFilter, Recipient, RecipientRow, Report, Rules};

use crate::conformance::support::{Fixture, new_seq};

pub const MINUTE: Duration = Duration::from_mins(1);

pub fn agent(name: &str) -> PrincipalId {
    PrincipalId::parse(name).unwrap()
}

pub fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap()
}

pub fn only(queues: &[&str]) -> QueueFilter {
    QueueFilter { only: Some(queues.iter().map(|name| queue(name)).collect()), except: Vec::new() }
}

pub fn except(queues: &[&str]) -> QueueFilter {
    QueueFilter { only: None, except: queues.iter().map(|name| queue(name)).collect() }
}

pub fn events(items: &[Item]) -> Vec<EventId> {
    items.iter().map(|item| item.facts.event_id).collect()
}

/// A part of a listing that nothing else bounds.
pub fn part(after: Option<EventId>, limit: usize) -> ItemRange {
    ItemRange { after, limit, scan_max: usize::MAX, bytes_max: usize::MAX }
}

impl Fixture {
    pub fn recipient(&self, name: &str) -> Recipient {
        Recipient { tenant: self.tenant.clone(), agent: agent(name) }
    }

    /// Work for these agents, each in a queue (`agent/queue`, or `agent` for the default one).
    pub fn work(&self, recipients: &[&str]) -> Work {
        let recipients = recipients.iter().map(|text| {
            let (name, queue_name) = text.split_once('/').unwrap_or((text, QueueName::DEFAULT));
            WorkFor { agent: agent(name), queue: queue(queue_name) }
        });
        Work {
            recipients: recipients.collect(),
            priority: Priority::Normal,
            kind: Some("review".to_owned()),
            source: None,
            summary: "something to do".to_owned(),
            available_at: self.now(),
            claim_key: Rules::default().claim_key(self.now(), Priority::Normal),
            expires_at: None,
            max_attempts: 5,
        }
    }

    /// A publication with that work.
    pub fn job_of(&self, work: Work) -> Publication {
        let audience: Vec<_> = work.recipients.iter().map(|recipient| recipient.agent.clone()).collect();
        Publication { audience: Audience::new(&audience), origin: EventOrigin::Work, work: Some(Arc::new(work)), ..self.event("do it") }
    }

    pub fn job(&self, recipients: &[&str]) -> Publication {
        self.job_of(self.work(recipients))
    }

    /// Appends one job and answers its event and position.
    pub async fn publish_job(&self, recipients: &[&str]) -> (EventId, Seq) {
        self.publish(self.job(recipients)).await
    }

    pub async fn publish(&self, publication: Publication) -> (EventId, Seq) {
        let id = publication.id;
        let answers = self.append(vec![publication]).await.unwrap();
        (id, Seq::new(new_seq(&answers[0])).unwrap())
    }

    pub async fn inbox<T, F>(&self, unit: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnMut(&'t mut (dyn InboxTx + 'static)) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        run_tx::<dyn InboxTx, _, StoreError, _>(&*self.store, "test_inbox", unit).await
    }

    /// The row of an inbox; makes it when there is none.
    pub async fn opened(&self, name: &str) -> RecipientRow {
        let recipient = self.recipient(name);
        let opened = self.inbox(move |tx| {
            let recipient = recipient.clone();
            Box::pin(async move { tx.open_recipient(&recipient).await })
        });
        opened.await.unwrap()
    }

    pub async fn row(&self, name: &str) -> Option<RecipientRow> {
        self.store.view(&self.recipient(name)).await.unwrap().row
    }

    pub async fn available(&self, name: &str, queues: QueueFilter, limit: usize) -> Vec<Item> {
        let number = self.opened(name).await.number;
        let available = self.inbox(move |tx| {
            let queues = queues.clone();
            Box::pin(async move { tx.available(number, &queues, limit).await })
        });
        available.await.unwrap()
    }

    pub async fn due_items(&self, name: &str, now: Timestamp, after: Option<(Timestamp, EventId)>, limit: usize) -> Vec<Item> {
        let number = self.opened(name).await.number;
        self.inbox(move |tx| Box::pin(async move { tx.due_items(number, now, after, limit).await })).await.unwrap()
    }

    pub async fn next_due_item(&self, name: &str) -> Option<Timestamp> {
        let number = self.opened(name).await.number;
        self.inbox(move |tx| Box::pin(async move { tx.next_due_item(number).await })).await.unwrap()
    }

    pub async fn find(&self, name: &str, events: &[EventId]) -> Vec<Option<Item>> {
        let (number, events) = (self.opened(name).await.number, events.to_vec());
        let found = self.inbox(move |tx| {
            let events = events.clone();
            Box::pin(async move { tx.find(number, &events).await })
        });
        found.await.unwrap()
    }

    pub async fn matching(&self, name: &str, filter: ItemFilter, after: Option<EventId>, limit: usize) -> Vec<Item> {
        let number = self.opened(name).await.number;
        let matching = self.inbox(move |tx| {
            let filter = filter.clone();
            Box::pin(async move { tx.matching(number, &filter, part(after, limit)).await })
        });
        matching.await.unwrap().items
    }

    pub async fn put(&self, items: Vec<Item>) -> Result<(), StoreError> {
        let put = self.inbox(move |tx| {
            let items = items.clone();
            Box::pin(async move { tx.put(&items).await })
        });
        put.await
    }

    /// The item of an event as it is stored, whatever its state.
    pub async fn item(&self, name: &str, event: EventId) -> Option<Item> {
        self.store.item(&self.recipient(name), event).await.unwrap()
    }

    /// Claims an item for `lease`.
    pub async fn claim(&self, name: &str, event: EventId, lease: Duration) -> Item {
        let mut item = self.find(name, &[event]).await.remove(0).unwrap();
        item.claim(self.now(), lease, LeaseHash::of("token"), None, &Rules::default()).unwrap();
        self.put(vec![item.clone()]).await.unwrap();
        item
    }

    /// Claims an item and acknowledges it.
    pub async fn finish(&self, name: &str, event: EventId) -> Item {
        let mut item = self.claim(name, event, MINUTE).await;
        item.acknowledge(self.now(), AckResult::Completed, Report::default(), &Rules::default()).unwrap();
        self.put(vec![item.clone()]).await.unwrap();
        item
    }

    pub async fn prune(&self, before: Timestamp, limit: usize) -> bool {
        self.inbox(move |tx| Box::pin(async move { tx.prune_inboxes(before, before, before, limit).await })).await.unwrap()
    }

    /// Raises the floor past everything and removes the rows.
    pub async fn retire_log(&self) {
        self.clock.advance(Duration::from_secs(1));
        self.store.raise_floor(&self.tenant, self.now(), 10_000).await.unwrap();
        self.store.sweep(&self.tenant, self.now(), 10_000).await.unwrap();
        self.store.sweep(&self.tenant, self.now().plus(MINUTE), 10_000).await.unwrap();
        assert_eq!(self.log_rows().await, 0);
    }
}
