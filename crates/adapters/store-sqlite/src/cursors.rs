//! The durable cursors of consumers.

mod in_flight;
mod take;

use agents::{ConsumerKey, ConsumerStatus, CursorRow, CursorStore, Holder, RestWindow, Save, SaveOutcome, Take, Taken, WindowWrite};
use async_trait::async_trait;
use domain::{ConsumerName, PrincipalId, Seq, SessionId, StoreError, SyncEpoch, TenantId, Timestamp};
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use crate::codec::{self, from_seq};
use crate::failure::Failure;
use crate::identity::{collect, first};
use crate::sql::sql;
use crate::store::SqliteStore;
use crate::tx::WriteTx;

/// The column of a holder: a session's UUID, or the nil UUID that no session has.
fn holder_uuid(holder: Holder) -> Uuid {
    match holder {
        Holder::Gateway(session) => session.uuid(),
        Holder::Rest => Uuid::nil(),
    }
}

fn holder(row: &Row<'_>, column: usize) -> Result<Option<Holder>, Failure> {
    let uuid = codec::optional_uuid(row, column)?;
    Ok(uuid.map(|uuid| if uuid.is_nil() { Holder::Rest } else { Holder::Gateway(SessionId::new(uuid)) }))
}

/// `acked_seq, epoch, holder_session_id, window_version, read_seq, sent_before, page_first, highest_sent, redeliver_up_to, in_flight` from `at` on.
fn cursor_row(row: &Row<'_>, at: usize) -> Result<CursorRow, Failure> {
    let in_flight = row.get_ref(at + 9)?.as_blob().ok().and_then(in_flight::decode);
    Ok(CursorRow {
        acked: codec::seq(row, at)?,
        epoch: SyncEpoch::new(codec::uuid(row, at + 1)?),
        holder: holder(row, at + 2)?,
        window_version: codec::natural(row, at + 3)?,
        window: RestWindow {
            read: codec::seq(row, at + 4)?,
            sent_before: codec::seq(row, at + 5)?,
            page_first: codec::seq(row, at + 6)?,
            highest_sent: codec::seq(row, at + 7)?,
            redeliver_up_to: codec::seq(row, at + 8)?,
            in_flight: in_flight.ok_or_else(|| Failure::corrupt("a consumer's window cannot be read"))?,
        },
    })
}

/// `consumer_name, updated_at, head, epoch`, then a cursor row.
fn status_row(row: &Row<'_>) -> Result<ConsumerStatus, Failure> {
    Ok(ConsumerStatus {
        name: codec::text(row, 0)?,
        updated_at: codec::timestamp(row, 1)?,
        head: codec::seq(row, 2)?,
        epoch: SyncEpoch::new(codec::uuid(row, 3)?),
        row: cursor_row(row, 4)?,
    })
}

fn status(connection: &Connection, key: &ConsumerKey) -> Result<Option<ConsumerStatus>, Failure> {
    let mut statement = connection.prepare_cached(sql!("union/consumer"))?;
    first(statement.query([key.tenant.as_str(), key.agent.as_str(), key.name.as_str()])?, status_row)
}

/// The stored acknowledgement, if `holder` holds the consumer.
fn held(connection: &Connection, key: &ConsumerKey, holder: Holder) -> Result<Option<Seq>, Failure> {
    let mut statement = connection.prepare_cached(sql!("agents/held"))?;
    let values = params![key.tenant.as_str(), key.agent.as_str(), key.name.as_str(), holder_uuid(holder).into_bytes()];
    first(statement.query(values)?, |row| codec::seq(row, 0))
}

fn verify(connection: &Connection, save: &Save) -> Result<SaveOutcome, Failure> {
    Ok(held(connection, &save.key, save.holder)?.map_or(SaveOutcome::Replaced, SaveOutcome::Held))
}

fn save(tx: &WriteTx, save: &Save) -> Result<SaveOutcome, Failure> {
    if let Some(acked) = save.acked {
        let key = &save.key;
        tx.prepare(sql!("agents/save"))?.execute(params![
            key.tenant.as_str(),
            key.agent.as_str(),
            key.name.as_str(),
            holder_uuid(save.holder).into_bytes(),
            from_seq(acked),
            tx.now().as_micros(),
        ])?;
    }
    verify(tx.connection(), save)
}

fn ack(tx: &mut WriteTx, key: &ConsumerKey, seq: Seq) -> Result<Option<ConsumerStatus>, Failure> {
    let head = match tx.log_head(&key.tenant) {
        Err(Failure::Store(StoreError::TenantInactive)) => return Ok(None),
        head => head?,
    };
    tx.prepare(sql!("agents/ack"))?.execute(params![
        key.tenant.as_str(),
        key.agent.as_str(),
        key.name.as_str(),
        from_seq(seq),
        head.epoch.uuid().into_bytes(),
        tx.now().as_micros(),
    ])?;
    // The head of this transaction may not be in its row yet.
    let status = status(tx.connection(), key)?;
    Ok(status.map(|status| ConsumerStatus { head: head.seq, ..status }))
}

fn restart(tx: &mut WriteTx, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, Failure> {
    let head = match tx.log_head(&key.tenant) {
        Err(Failure::Store(StoreError::TenantInactive)) => return Ok(SaveOutcome::Replaced),
        head => head?.seq,
    };
    let values = params![
        key.tenant.as_str(),
        key.agent.as_str(),
        key.name.as_str(),
        holder_uuid(holder).into_bytes(),
        from_seq(seq),
        tx.now().as_micros(),
        from_seq(head),
    ];
    let stored = first(tx.prepare(sql!("agents/restart"))?.query(values)?, |row| codec::seq(row, 0))?;
    Ok(stored.map_or(SaveOutcome::Replaced, SaveOutcome::Held))
}

fn write_window(tx: &WriteTx, write: &WindowWrite) -> Result<bool, Failure> {
    let (key, window) = (&write.key, &write.window);
    let version = i64::try_from(write.expected_version).unwrap_or(i64::MAX);
    let changed = tx.prepare(sql!("agents/write_window"))?.execute(params![
        key.tenant.as_str(),
        key.agent.as_str(),
        key.name.as_str(),
        holder_uuid(Holder::Rest).into_bytes(),
        version,
        from_seq(window.read),
        from_seq(window.sent_before),
        from_seq(window.page_first),
        from_seq(window.highest_sent),
        from_seq(window.redeliver_up_to),
        in_flight::encode(&window.in_flight),
        tx.now().as_micros(),
    ])?;
    Ok(changed > 0)
}

#[async_trait]
impl CursorStore for SqliteStore {
    async fn take(&self, take: &Take, max_consumers: usize) -> Result<Taken, StoreError> {
        let take = take.clone();
        self.write("take_consumer", move |tx| take::take(tx, &take, max_consumers)).await
    }

    async fn status(&self, key: &ConsumerKey) -> Result<Option<ConsumerStatus>, StoreError> {
        let key = key.clone();
        self.read(move |tx| status(tx.connection(), &key)).await
    }

    async fn save(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, StoreError> {
        let saves = saves.to_vec();
        if saves.iter().all(|save| save.acked.is_none()) {
            return self.read(move |tx| saves.iter().map(|save| verify(tx.connection(), save)).collect()).await;
        }
        self.write("save_cursors", move |tx| saves.iter().map(|save| self::save(tx, save)).collect()).await
    }

    async fn ack(&self, key: &ConsumerKey, seq: Seq) -> Result<Option<ConsumerStatus>, StoreError> {
        let key = key.clone();
        self.write("ack_consumer", move |tx| ack(tx, &key, seq)).await
    }

    async fn restart(&self, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, StoreError> {
        let key = key.clone();
        self.write("restart_consumer", move |tx| restart(tx, &key, holder, seq)).await
    }

    async fn write_window(&self, write: &WindowWrite) -> Result<bool, StoreError> {
        let write = write.clone();
        self.write("write_window", move |tx| write_window(tx, &write)).await
    }

    async fn list(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        after: Option<&ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerStatus>, StoreError> {
        let (tenant, agent, after) = (tenant.clone(), agent.clone(), after.cloned());
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("union/list_consumers"))?;
            let after = after.as_ref().map_or("", ConsumerName::as_str);
            collect(statement.query(params![tenant.as_str(), agent.as_str(), after, codec::from_count(limit)])?, status_row)
        })
        .await
    }

    async fn taken_since(&self, since: Timestamp) -> Result<Vec<(ConsumerKey, Option<Holder>)>, StoreError> {
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("agents/taken_since"))?;
            collect(statement.query([since.as_micros()])?, |row| {
                let key = ConsumerKey { tenant: codec::text(row, 0)?, agent: codec::text(row, 1)?, name: codec::text(row, 2)? };
                Ok((key, holder(row, 3)?))
            })
        })
        .await
    }
}
