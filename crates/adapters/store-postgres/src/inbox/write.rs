//! The writing port of `inbox`.

use async_trait::async_trait;
use domain::{AgentSessionId, Appended, EventId, Publication, Seq, StoreError, TenantId, Timestamp};
use inbox::{
    AgentSession, ClaimRecord, InboxWrite, Item, ItemFilter, ItemPage, ItemRange, LeaseKey, QueueFilter, Recipient, RecipientNumber,
    RecipientRow,
};

use super::held::Mode;
use super::{claims, prune, put, recipients, select, sessions};
use crate::tx::WriteTx;

fn new_seq(answer: &Appended) -> Result<Seq, StoreError> {
    match answer {
        Appended::New { seq, .. } => Ok(*seq),
        _ => Err(StoreError::Conflict("an event of the inbox is not new")),
    }
}

#[async_trait]
impl InboxWrite for WriteTx {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    async fn recipient(&mut self, recipient: &Recipient) -> Result<Option<RecipientRow>, StoreError> {
        Ok(recipients::lock(self, recipient, Mode::Exclusive).await?)
    }

    async fn share_recipient(&mut self, recipient: &Recipient) -> Result<Option<RecipientRow>, StoreError> {
        Ok(recipients::lock(self, recipient, Mode::Shared).await?)
    }

    async fn open_recipient(&mut self, recipient: &Recipient) -> Result<RecipientRow, StoreError> {
        Ok(recipients::open(self, recipient).await?)
    }

    async fn save_recipient(&mut self, row: &RecipientRow) -> Result<(), StoreError> {
        Ok(recipients::save(self, row).await?)
    }

    async fn available(&mut self, recipient: RecipientNumber, queues: &QueueFilter, limit: usize) -> Result<Vec<Item>, StoreError> {
        Ok(select::available(self, recipient, queues, limit).await?)
    }

    async fn due_items(
        &mut self,
        recipient: RecipientNumber,
        now: Timestamp,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
    ) -> Result<Vec<Item>, StoreError> {
        Ok(select::due_items(self, recipient, now, after, limit).await?)
    }

    async fn next_due_item(&mut self, recipient: RecipientNumber) -> Result<Option<Timestamp>, StoreError> {
        Ok(select::next_due_item(self, recipient).await?)
    }

    async fn claimed(&mut self, recipient: RecipientNumber, most: u64) -> Result<u64, StoreError> {
        Ok(select::claimed(self, recipient, most).await?)
    }

    async fn find(&mut self, recipient: RecipientNumber, events: &[EventId]) -> Result<Vec<Option<Item>>, StoreError> {
        Ok(select::find(self, recipient, events).await?)
    }

    async fn matching(&mut self, recipient: RecipientNumber, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, StoreError> {
        Ok(select::matching(self, recipient, filter, range).await?)
    }

    async fn put(&mut self, items: &[Item]) -> Result<(), StoreError> {
        Ok(put::put(self, items).await?)
    }

    async fn append_inbox(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Seq>, StoreError> {
        let appended = Self::append(self, tenant, publications).await?;
        appended.iter().map(new_seq).collect()
    }

    async fn lease_key(&mut self, tenant: &TenantId, offered: &LeaseKey) -> Result<LeaseKey, StoreError> {
        Ok(claims::lease_key(self, tenant, offered).await?)
    }

    async fn claim_record(&mut self, recipient: RecipientNumber, key: &str) -> Result<Option<ClaimRecord>, StoreError> {
        Ok(claims::record(self, recipient, key).await?)
    }

    async fn put_claim_record(&mut self, recipient: RecipientNumber, key: &str, record: &ClaimRecord) -> Result<(), StoreError> {
        Ok(claims::put_record(self, recipient, key, record).await?)
    }

    async fn put_session(&mut self, session: &AgentSession) -> Result<(), StoreError> {
        Ok(sessions::put(self, session).await?)
    }

    async fn touch_session(
        &mut self,
        recipient: &Recipient,
        id: &AgentSessionId,
        last_seen: Option<Seq>,
        is_active: bool,
    ) -> Result<bool, StoreError> {
        Ok(sessions::touch(self, recipient, id, last_seen, is_active).await?)
    }

    async fn prune_inboxes(
        &mut self,
        ended_before: Timestamp,
        records_before: Timestamp,
        sessions_before: Timestamp,
        limit: usize,
    ) -> Result<bool, StoreError> {
        Ok(prune::prune(self, ended_before, records_before, sessions_before, limit).await?)
    }
}
