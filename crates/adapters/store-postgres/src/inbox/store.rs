//! The reading port of `inbox`.

use async_trait::async_trait;
use bytes::Bytes;
use domain::{AgentSessionId, EventId, QueueName, Seq, StoreError, SyncEpoch, TenantId, Timestamp};
use inbox::{
    AgentSession, Backlog, InboxPage, InboxStore, InboxSums, InboxTotals, InboxView, Item, ItemFilter, ItemPage, ItemRange, PollRange,
    QueueFilter, Recipient,
};

use super::{backlog, list, payloads, rows, select, sessions};
use crate::codec::{self, from_count};
use crate::db::{self, PgRow, Session};
use crate::failure::Failure;
use crate::sql::sql;
use crate::store::PostgresStore;

/// An inbox, and the number of its tenant.
async fn view(connection: &mut Session, recipient: &Recipient) -> Result<(InboxView, i64), Failure> {
    let query = db::query(sql!("union/inbox_view")).bind(recipient.tenant.as_str()).bind(recipient.agent.as_str());
    let row = query.fetch_optional(connection).await?.ok_or(Failure::Store(StoreError::TenantInactive))?;
    let view = InboxView {
        row: rows::recipient(&row, &recipient.tenant)?,
        epoch: SyncEpoch::new(codec::uuid(&row, 14)?),
        floor: codec::seq(&row, 13)?,
        log_head: codec::seq(&row, 12)?,
    };
    Ok((view, codec::get(&row, 11)?))
}

/// `tenant_id`, then how many items are current, dead letters and quarantined, when the oldest current one was made, and the head.
fn sums_row(row: &PgRow) -> Result<(TenantId, InboxSums), Failure> {
    let sums = InboxSums {
        current: codec::natural(row, 1)?,
        dead_letters: codec::natural(row, 2)?,
        quarantined: codec::natural(row, 3)?,
        oldest: codec::optional_timestamp(row, 4)?,
        head: codec::seq(row, 5)?,
    };
    Ok((codec::text(row, 0)?, sums))
}

impl PostgresStore {
    async fn inbox_page(&self, recipient: &Recipient, range: &PollRange) -> Result<InboxPage, Failure> {
        let mut tx = self.snapshot().await?;
        let (view, _) = view(tx.connection(), recipient).await?;
        let Some(number) = view.row.as_ref().map(|row| row.number) else {
            return Ok(InboxPage { view, items: Vec::new(), more: false, next: range.after, oldest: None });
        };
        let list::Rings { items, more, next } = list::poll(tx.connection(), &self.shared.metrics, number, range).await?;
        let oldest = list::oldest(tx.connection(), number).await?;
        Ok(InboxPage { view, items, more, next, oldest })
    }

    async fn inbox_items(&self, recipient: &Recipient, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, Failure> {
        let mut tx = self.snapshot().await?;
        match view(tx.connection(), recipient).await?.0.row {
            Some(row) => list::any(tx.connection(), &self.shared.metrics, row.number, filter, range).await,
            None => Ok(ItemPage::default()),
        }
    }

    async fn inbox_item(&self, recipient: &Recipient, event: EventId) -> Result<Option<Item>, Failure> {
        // Two statements suffice: an item moves from the hot table to the other, never back.
        let mut connection = self.reader().await?;
        let Some(row) = view(&mut connection, recipient).await?.0.row else { return Ok(None) };
        let (metrics, mut lost) = (&self.shared.metrics, Vec::new());
        let found = select::named(&mut connection, metrics, sql!("inbox/items"), row.number, &[event], &mut lost).await?;
        Ok(found.into_values().next())
    }

    async fn inbox_totals(&self, tenants: usize) -> Result<InboxTotals, Failure> {
        let rows = db::query(sql!("union/inbox_totals")).fetch_all(&mut *self.reader().await?).await?;
        let sums = rows.iter().map(sums_row).collect::<Result<Vec<_>, _>>()?;
        let all = sums.iter().fold(InboxSums::default(), |all, (_, sums)| all.and(*sums));
        let size = |sums: &InboxSums| sums.current + sums.dead_letters + sums.quarantined;
        let mut tenants_by_size: Vec<_> = sums.into_iter().filter(|(_, sums)| size(sums) > 0).collect();
        tenants_by_size.sort_by(|(one, its), (other, others)| size(others).cmp(&size(its)).then_with(|| one.cmp(other)));
        tenants_by_size.truncate(tenants);
        Ok(InboxTotals { all, tenants: tenants_by_size })
    }

    async fn envelopes_of(&self, tenant: &TenantId, events: &[(Seq, EventId)]) -> Result<Vec<Option<Bytes>>, Failure> {
        let mut connection = self.reader().await?;
        let head = db::query(sql!("sync/head")).bind(tenant.as_str()).fetch_optional(&mut *connection).await?;
        let head = head.ok_or(Failure::Store(StoreError::TenantInactive))?;
        payloads::envelopes(&mut connection, codec::get(&head, 0)?, events).await
    }

    async fn handed_out(
        &self,
        recipient: &Recipient,
        events: &[(Seq, EventId)],
        queues: &QueueFilter,
        now: Timestamp,
        most: u64,
    ) -> Result<(Vec<Option<Bytes>>, Backlog), Failure> {
        let mut connection = self.reader().await?;
        let (view, tenant_number) = view(&mut connection, recipient).await?;
        let envelopes = payloads::envelopes(&mut connection, tenant_number, events).await?;
        let backlog = match view.row {
            Some(row) => backlog::backlog(&mut connection, row.number, queues, now, most).await?,
            None => Backlog::default(),
        };
        Ok((envelopes, backlog))
    }

    async fn due_inboxes(&self, now: Timestamp, limit: usize) -> Result<Vec<Recipient>, Failure> {
        let query = db::query(sql!("union/inbox_due")).bind(now.as_micros()).bind(from_count(limit));
        let rows = query.fetch_all(&mut *self.reader().await?).await?;
        rows.iter().map(|row| Ok(Recipient { tenant: codec::text(row, 0)?, agent: codec::text(row, 1)? })).collect()
    }
}

#[async_trait]
impl InboxStore for PostgresStore {
    async fn view(&self, recipient: &Recipient) -> Result<InboxView, StoreError> {
        let mut connection = self.reader().await?;
        Ok(view(&mut connection, recipient).await?.0)
    }

    async fn poll(&self, recipient: &Recipient, range: &PollRange) -> Result<InboxPage, StoreError> {
        Ok(self.inbox_page(recipient, range).await?)
    }

    async fn backlog(&self, recipient: &Recipient, queues: &QueueFilter, now: Timestamp, most: u64) -> Result<Backlog, StoreError> {
        Ok(self.handed_out(recipient, &[], queues, now, most).await?.1)
    }

    async fn claimable_queues(&self, recipient: &Recipient, except: &[QueueName], limit: usize) -> Result<Vec<QueueName>, StoreError> {
        let mut connection = self.reader().await?;
        let Some(row) = view(&mut connection, recipient).await?.0.row else { return Ok(Vec::new()) };
        Ok(select::queues_with_items(&mut connection, row.number, except, limit).await?)
    }

    async fn items(&self, recipient: &Recipient, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError> {
        Ok(self.inbox_items(recipient, filter, range).await?)
    }

    async fn item(&self, recipient: &Recipient, event: EventId) -> Result<Option<Item>, StoreError> {
        Ok(self.inbox_item(recipient, event).await?)
    }

    async fn envelopes(&self, tenant: &TenantId, events: &[(Seq, EventId)]) -> Result<Vec<Option<Bytes>>, StoreError> {
        Ok(self.envelopes_of(tenant, events).await?)
    }

    async fn envelopes_and_backlog(
        &self,
        recipient: &Recipient,
        events: &[(Seq, EventId)],
        queues: &QueueFilter,
        now: Timestamp,
        most: u64,
    ) -> Result<(Vec<Option<Bytes>>, Backlog), StoreError> {
        Ok(self.handed_out(recipient, events, queues, now, most).await?)
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Recipient>, StoreError> {
        Ok(self.due_inboxes(now, limit).await?)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let mut connection = self.reader().await?;
        let row = db::query(sql!("union/inbox_next_due")).fetch_optional(&mut *connection).await.map_err(Failure::from)?;
        Ok(row.as_ref().map(|row| codec::timestamp(row, 0)).transpose()?)
    }

    async fn session(&self, tenant: &TenantId, id: &AgentSessionId) -> Result<Option<AgentSession>, StoreError> {
        let mut connection = self.reader().await?;
        Ok(sessions::session(&mut connection, tenant, id).await?)
    }

    async fn totals(&self, tenants: usize) -> Result<InboxTotals, StoreError> {
        Ok(self.inbox_totals(tenants).await?)
    }
}
