//! The durable cursors of consumers.

mod in_flight;
mod rows;
mod save;
mod take;

use agents::{ConsumerKey, ConsumerStatus, CursorStore, Holder, Save, SaveOutcome, Take, Taken, WindowWrite};
use async_trait::async_trait;
use domain::{ConsumerName, PrincipalId, Seq, StoreError, TenantId, Timestamp};
use sqlx_core::query::Query;
use sqlx_postgres::PgArguments;

use crate::codec::{self, from_seq};
use crate::db::{self, Postgres, Session};
use crate::failure::Failure;
use crate::identity::collect;
use crate::sql::sql;
use crate::store::PostgresStore;
use crate::tx::WriteTx;

use rows::{cursor_row, holder, holder_uuid, status_row};

/// A statement whose first three values name a consumer.
fn of<'q>(text: &'static str, key: &'q ConsumerKey) -> Query<'q, Postgres, PgArguments> {
    db::query(text).bind(key.tenant.as_str()).bind(key.agent.as_str()).bind(key.name.as_str())
}

async fn status(connection: &mut Session, key: &ConsumerKey) -> Result<Option<ConsumerStatus>, Failure> {
    of(sql!("union/consumer"), key).fetch_optional(connection).await?.as_ref().map(status_row).transpose()
}

async fn ack(tx: &mut WriteTx, key: &ConsumerKey, seq: Seq) -> Result<Option<ConsumerStatus>, Failure> {
    let epoch = match tx.log_head(&key.tenant).await {
        Err(Failure::Store(StoreError::TenantInactive)) => return Ok(None),
        head => head?.epoch,
    };
    let raise = of(sql!("agents/ack"), key).bind(from_seq(seq)).bind(epoch.uuid()).bind(tx.now().as_micros());
    raise.execute(tx.connection()).await?;
    status(tx.connection(), key).await
}

async fn restart(tx: &mut WriteTx, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, Failure> {
    let locked = of(sql!("agents/cursor"), key).fetch_optional(tx.connection()).await?;
    let held = locked.as_ref().map(|row| cursor_row(row, 0)).transpose()?.is_some_and(|row| row.holder == Some(holder));
    if !held {
        return Ok(SaveOutcome::Replaced);
    }
    // Read after the row was locked: whatever it acknowledges had been committed by then.
    let Some(status) = status(tx.connection(), key).await? else { return Ok(SaveOutcome::Replaced) };
    let statement = of(sql!("agents/restart"), key).bind(from_seq(seq)).bind(tx.now().as_micros()).bind(from_seq(status.head));
    let stored = statement.fetch_one(tx.connection()).await?;
    Ok(SaveOutcome::Held(codec::seq(&stored, 0)?))
}

async fn write_window(tx: &mut WriteTx, write: &WindowWrite) -> Result<bool, Failure> {
    let window = &write.window;
    let statement = of(sql!("agents/write_window"), &write.key)
        .bind(holder_uuid(Holder::Rest))
        .bind(i64::try_from(write.expected_version).unwrap_or(i64::MAX))
        .bind(from_seq(window.read))
        .bind(from_seq(window.sent_before))
        .bind(from_seq(window.page_first))
        .bind(from_seq(window.highest_sent))
        .bind(from_seq(window.redeliver_up_to))
        .bind(in_flight::encode(&window.in_flight))
        .bind(tx.now().as_micros());
    Ok(statement.execute(tx.connection()).await?.rows_affected() > 0)
}

impl PostgresStore {
    async fn consumer_status(&self, key: &ConsumerKey) -> Result<Option<ConsumerStatus>, Failure> {
        let mut connection = self.reader().await?;
        status(&mut connection, key).await
    }

    async fn list_consumers(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        after: Option<&ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerStatus>, Failure> {
        let mut connection = self.reader().await?;
        let statement = db::query(sql!("union/list_consumers"))
            .bind(tenant.as_str())
            .bind(agent.as_str())
            .bind(after.map_or("", ConsumerName::as_str))
            .bind(codec::from_count(limit));
        collect(&statement.fetch_all(&mut *connection).await?, status_row)
    }

    async fn consumers_taken(&self, since: Timestamp) -> Result<Vec<(ConsumerKey, Option<Holder>)>, Failure> {
        let mut connection = self.reader().await?;
        let taken = db::query(sql!("agents/taken_since")).bind(since.as_micros()).fetch_all(&mut *connection).await?;
        collect(&taken, |row| {
            let key = ConsumerKey { tenant: codec::text(row, 0)?, agent: codec::text(row, 1)?, name: codec::text(row, 2)? };
            Ok((key, holder(row, 3)?))
        })
    }
}

#[async_trait]
impl CursorStore for PostgresStore {
    async fn take(&self, take: &Take, max_consumers: usize) -> Result<Taken, StoreError> {
        let take = take.clone();
        self.write("take_consumer", move |tx| {
            let take = take.clone();
            Box::pin(async move { take::take(tx, &take, max_consumers).await })
        })
        .await
    }

    async fn status(&self, key: &ConsumerKey) -> Result<Option<ConsumerStatus>, StoreError> {
        Ok(self.consumer_status(key).await?)
    }

    async fn save(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, StoreError> {
        self.save_cursors(saves).await
    }

    async fn ack(&self, key: &ConsumerKey, seq: Seq) -> Result<Option<ConsumerStatus>, StoreError> {
        let key = key.clone();
        self.write("ack_consumer", move |tx| {
            let key = key.clone();
            Box::pin(async move { ack(tx, &key, seq).await })
        })
        .await
    }

    async fn restart(&self, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, StoreError> {
        let key = key.clone();
        self.write("restart_consumer", move |tx| {
            let key = key.clone();
            Box::pin(async move { restart(tx, &key, holder, seq).await })
        })
        .await
    }

    async fn write_window(&self, write: &WindowWrite) -> Result<bool, StoreError> {
        let write = write.clone();
        self.write("write_window", move |tx| {
            let write = write.clone();
            Box::pin(async move { write_window(tx, &write).await })
        })
        .await
    }

    async fn list(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        after: Option<&ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerStatus>, StoreError> {
        Ok(self.list_consumers(tenant, agent, after, limit).await?)
    }

    async fn taken_since(&self, since: Timestamp) -> Result<Vec<(ConsumerKey, Option<Holder>)>, StoreError> {
        Ok(self.consumers_taken(since).await?)
    }
}
