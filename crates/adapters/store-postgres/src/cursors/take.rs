//! Taking a consumer: the newest holder wins.

use agents::{CursorRow, RestWindow, Take, Taken};
use domain::{StoreError, Timestamp};

use super::{cursor_row, holder_uuid, of};
use crate::codec::{self, from_seq};
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::{LogHead, WriteTx};

/// Makes the row at the committed head if it is absent, else changes its holder.
///
/// The row is locked before the head is read: what its holder acknowledged lies at or below the head that is answered.
pub(super) async fn take(tx: &mut WriteTx, take: &Take, max_consumers: usize) -> Result<Taken, Failure> {
    let found = match find(tx, take).await? {
        Some(found) => Some(found),
        None => {
            lock_agent(tx, take).await?;
            // Whoever held the lock before may have made it.
            find(tx, take).await?
        }
    };
    let head = tx.log_head(&take.key.tenant).await?;
    if !head.is_active() {
        return Err(StoreError::TenantInactive.into());
    }
    let now = tx.now();
    let (row, created, previous) = match found {
        None => (create(tx, take, &head, max_consumers, now).await?, true, None),
        Some(found) => {
            let previous = found.holder;
            (change(tx, take, &head, found, now).await?, false, previous)
        }
    };
    Ok(Taken { row, created, previous, head: head.seq, floor: head.floor, epoch: head.epoch, now })
}

async fn find(tx: &mut WriteTx, take: &Take) -> Result<Option<CursorRow>, Failure> {
    let found = of(sql!("agents/cursor"), &take.key).fetch_optional(tx.connection()).await?;
    found.as_ref().map(|row| cursor_row(row, 0)).transpose()
}

/// Makes others who would make a consumer of this agent wait.
async fn lock_agent(tx: &mut WriteTx, take: &Take) -> Result<(), Failure> {
    let key = &take.key;
    let lock = db::query(sql!("authz/lock_principal")).bind(key.tenant.as_str()).bind(key.agent.as_str());
    match lock.fetch_optional(tx.connection()).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::TenantInactive.into()),
    }
}

async fn create(tx: &mut WriteTx, take: &Take, head: &LogHead, max_consumers: usize, now: Timestamp) -> Result<CursorRow, Failure> {
    let count = db::query(sql!("agents/count")).bind(take.key.tenant.as_str()).bind(take.key.agent.as_str());
    let present = codec::natural(&count.fetch_one(tx.connection()).await?, 0)?;
    if usize::try_from(present).unwrap_or(usize::MAX) >= max_consumers {
        return Err(StoreError::Conflict("the agent has as many consumers as it may").into());
    }
    let create = of(sql!("agents/create"), &take.key)
        .bind(from_seq(head.seq))
        .bind(head.epoch.uuid())
        .bind(holder_uuid(take.holder))
        .bind(now.as_micros());
    create.execute(tx.connection()).await?;
    Ok(CursorRow { acked: head.seq, epoch: head.epoch, holder: Some(take.holder), window_version: 1, window: RestWindow::default() })
}

async fn change(tx: &mut WriteTx, take: &Take, head: &LogHead, found: CursorRow, now: Timestamp) -> Result<CursorRow, Failure> {
    let epoch = head.epoch.uuid();
    if found.holder == Some(take.holder) {
        of(sql!("agents/retake"), &take.key).bind(epoch).bind(now.as_micros()).execute(tx.connection()).await?;
        return Ok(CursorRow { epoch: head.epoch, ..found });
    }
    let change = of(sql!("agents/change_holder"), &take.key).bind(epoch).bind(now.as_micros()).bind(holder_uuid(take.holder));
    change.execute(tx.connection()).await?;
    Ok(CursorRow {
        acked: found.acked,
        epoch: head.epoch,
        holder: Some(take.holder),
        window_version: found.window_version + 1,
        window: RestWindow::default(),
    })
}
