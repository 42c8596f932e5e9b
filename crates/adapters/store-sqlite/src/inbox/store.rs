//! The reading port of `inbox`.

use std::collections::{BTreeMap, HashMap, VecDeque};

use async_trait::async_trait;
use bytes::Bytes;
use domain::{AgentSessionId, EventId, QueueName, Seq, StoreError, TenantId, Timestamp};
use inbox::{
    AgentSession, Backlog, InboxPage, InboxStore, InboxSums, InboxTotals, InboxView, Item, ItemFilter, ItemPage, ItemRange, PollRange,
    QueueFilter, Recipient,
};
use rusqlite::Row;

use super::{backlog, list, payloads, recipients, select, sessions};
use crate::codec;
use crate::failure::Failure;
use crate::identity::first;
use crate::readers::ReadTx;
use crate::sql::sql;
use crate::store::SqliteStore;
use crate::tx::read_head;

fn view(tx: &ReadTx, recipient: &Recipient) -> Result<InboxView, Failure> {
    let head = read_head(tx.connection(), &recipient.tenant)?.ok_or(Failure::Store(StoreError::TenantInactive))?;
    let row = recipients::find(tx.connection(), head.number, recipient)?;
    Ok(InboxView { row, epoch: head.epoch, floor: head.floor, log_head: head.seq })
}

fn poll(tx: &ReadTx, recipient: &Recipient, range: &PollRange) -> Result<InboxPage, Failure> {
    let view = view(tx, recipient)?;
    let Some(number) = view.row.as_ref().map(|row| row.number) else {
        return Ok(InboxPage { view, items: Vec::new(), more: false, next: range.after, oldest: None });
    };
    let list::Rings { items, more, next } = list::poll(tx.connection(), tx.metrics(), number, range)?;
    let oldest = list::oldest(tx.connection(), number)?;
    Ok(InboxPage { view, items, more, next, oldest })
}

/// Inboxes that are due: one of each tenant in turn, the longest due first.
fn due(tx: &ReadTx, now: Timestamp, limit: usize) -> Result<Vec<Recipient>, Failure> {
    let mut statement = tx.prepare(sql!("union/inbox_due"))?;
    let mut rows = statement.query([now.as_micros()])?;
    let mut order: Vec<TenantId> = Vec::new();
    let mut waiting: HashMap<TenantId, VecDeque<Recipient>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let recipient = Recipient { tenant: codec::text(row, 0)?, agent: codec::text(row, 1)? };
        let queue = waiting.entry(recipient.tenant.clone()).or_insert_with(|| {
            order.push(recipient.tenant.clone());
            VecDeque::new()
        });
        if queue.len() < limit {
            queue.push_back(recipient);
        }
    }
    let mut due = Vec::new();
    while due.len() < limit && !order.is_empty() {
        order.retain(|tenant| {
            let next = waiting.get_mut(tenant).and_then(VecDeque::pop_front);
            let is_left = next.is_some();
            due.extend(next);
            is_left
        });
    }
    due.truncate(limit);
    Ok(due)
}

/// `tenant_id`, then how many items are current, dead letters and quarantined, when the oldest current one was made, and the head.
fn sums_row(row: &Row<'_>) -> Result<(TenantId, InboxSums), Failure> {
    let sums = InboxSums {
        current: codec::natural(row, 1)?,
        dead_letters: codec::natural(row, 2)?,
        quarantined: codec::natural(row, 3)?,
        oldest: codec::optional_timestamp(row, 4)?,
        head: codec::seq(row, 5)?,
    };
    Ok((codec::text(row, 0)?, sums))
}

/// Sums over all inboxes and over those of each tenant; the tenants that have most come first, those with nothing are left out.
fn totals(tx: &ReadTx, tenants: usize) -> Result<InboxTotals, Failure> {
    let mut statement = tx.prepare(sql!("union/inbox_totals"))?;
    let mut rows = statement.query([])?;
    let (mut all, mut by_tenant) = (InboxSums::default(), BTreeMap::<TenantId, InboxSums>::new());
    while let Some(row) = rows.next()? {
        let (tenant, sums) = sums_row(row)?;
        all = all.and(sums);
        let sum = by_tenant.entry(tenant).or_default();
        *sum = sum.and(sums);
    }
    let size = |sums: &InboxSums| sums.current + sums.dead_letters + sums.quarantined;
    let mut tenants_by_size: Vec<_> = by_tenant.into_iter().filter(|(_, sums)| size(sums) > 0).collect();
    tenants_by_size.sort_by_key(|(_, sums)| std::cmp::Reverse(size(sums)));
    tenants_by_size.truncate(tenants);
    Ok(InboxTotals { all, tenants: tenants_by_size })
}

#[async_trait]
impl InboxStore for SqliteStore {
    async fn view(&self, recipient: &Recipient) -> Result<InboxView, StoreError> {
        let recipient = recipient.clone();
        self.read(move |tx| view(tx, &recipient)).await
    }

    async fn poll(&self, recipient: &Recipient, range: &PollRange) -> Result<InboxPage, StoreError> {
        let (recipient, range) = (recipient.clone(), range.clone());
        self.read(move |tx| poll(tx, &recipient, &range)).await
    }

    async fn backlog(&self, recipient: &Recipient, queues: &QueueFilter, now: Timestamp, most: u64) -> Result<Backlog, StoreError> {
        let (recipient, queues) = (recipient.clone(), queues.clone());
        self.read(move |tx| match view(tx, &recipient)?.row {
            Some(row) => backlog::backlog(tx.connection(), row.number, &queues, now, most),
            None => Ok(Backlog::default()),
        })
        .await
    }

    async fn claimable_queues(&self, recipient: &Recipient, except: &[QueueName], limit: usize) -> Result<Vec<QueueName>, StoreError> {
        let (recipient, filter) = (recipient.clone(), QueueFilter { only: None, except: except.to_vec() });
        self.read(move |tx| {
            let Some(row) = view(tx, &recipient)?.row else { return Ok(Vec::new()) };
            let queues = select::claimable_queues(tx.connection(), row.number, &filter)?;
            // A name that cannot be read hides no other.
            Ok(queues.iter().filter_map(|queue| queue.name.parse().ok()).take(limit).collect())
        })
        .await
    }

    async fn items(&self, recipient: &Recipient, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError> {
        let (recipient, filter) = (recipient.clone(), filter.clone());
        self.read(move |tx| match view(tx, &recipient)?.row {
            Some(row) => list::any(tx.connection(), tx.metrics(), row.number, &filter, range),
            None => Ok(ItemPage::default()),
        })
        .await
    }

    async fn item(&self, recipient: &Recipient, event: EventId) -> Result<Option<Item>, StoreError> {
        let recipient = recipient.clone();
        self.read(move |tx| match view(tx, &recipient)?.row {
            Some(row) => select::item(tx.connection(), tx.metrics(), row.number, event, &mut Vec::new()),
            None => Ok(None),
        })
        .await
    }

    async fn envelopes(&self, tenant: &TenantId, events: &[(Seq, EventId)]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let (tenant, events) = (tenant.clone(), events.to_vec());
        self.read(move |tx| payloads::envelopes(tx, &tenant, &events)).await
    }

    async fn envelopes_and_backlog(
        &self,
        recipient: &Recipient,
        events: &[(Seq, EventId)],
        queues: &QueueFilter,
        now: Timestamp,
        most: u64,
    ) -> Result<(Vec<Option<Bytes>>, Backlog), StoreError> {
        let (recipient, events, queues) = (recipient.clone(), events.to_vec(), queues.clone());
        self.read(move |tx| {
            let envelopes = payloads::envelopes(tx, &recipient.tenant, &events)?;
            let backlog = match view(tx, &recipient)?.row {
                Some(row) => backlog::backlog(tx.connection(), row.number, &queues, now, most)?,
                None => Backlog::default(),
            };
            Ok((envelopes, backlog))
        })
        .await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Recipient>, StoreError> {
        self.read(move |tx| due(tx, now, limit)).await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|tx| first(tx.prepare(sql!("union/inbox_next_due"))?.query([])?, |row| codec::timestamp(row, 0))).await
    }

    async fn session(&self, tenant: &TenantId, id: &AgentSessionId) -> Result<Option<AgentSession>, StoreError> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |tx| sessions::session(tx.connection(), &tenant, &id)).await
    }

    async fn totals(&self, tenants: usize) -> Result<InboxTotals, StoreError> {
        self.read(move |tx| totals(tx, tenants)).await
    }
}
