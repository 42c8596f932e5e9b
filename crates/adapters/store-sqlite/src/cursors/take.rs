//! Taking a consumer: the newest holder wins.

use agents::{ConsumerKey, CursorRow, RestWindow, Take, Taken};
use domain::{StoreError, Timestamp};
use rusqlite::params;

use super::{cursor_row, holder_uuid};
use crate::codec::from_seq;
use crate::failure::Failure;
use crate::identity::first;
use crate::sql::sql;
use crate::tx::{LogHead, WriteTx};

/// Makes the row at the committed head if it is absent, else changes its holder.
pub(crate) fn take(tx: &mut WriteTx, take: &Take, max_consumers: usize) -> Result<Taken, Failure> {
    let head = tx.active_head(&take.key.tenant)?;
    let now = tx.now();
    let (row, created, previous) = match find(tx, &take.key)? {
        None => (create(tx, take, &head, max_consumers, now)?, true, None),
        Some(found) => {
            let previous = found.holder;
            (change(tx, take, &head, found, now)?, false, previous)
        }
    };
    Ok(Taken { row, created, previous, head: head.seq, floor: head.floor, epoch: head.epoch, now })
}

fn find(tx: &WriteTx, key: &ConsumerKey) -> Result<Option<CursorRow>, Failure> {
    let mut statement = tx.prepare(sql!("agents/cursor"))?;
    first(statement.query([key.tenant.as_str(), key.agent.as_str(), key.name.as_str()])?, |row| cursor_row(row, 0))
}

fn create(tx: &WriteTx, take: &Take, head: &LogHead, max_consumers: usize, now: Timestamp) -> Result<CursorRow, Failure> {
    let key = &take.key;
    let present: i64 = tx.prepare(sql!("agents/count"))?.query_row([key.tenant.as_str(), key.agent.as_str()], |row| row.get(0))?;
    if usize::try_from(present).unwrap_or(usize::MAX) >= max_consumers {
        return Err(StoreError::Conflict("the agent has as many consumers as it may").into());
    }
    let inserted = tx.prepare(sql!("agents/create"))?.execute(params![
        key.tenant.as_str(),
        key.agent.as_str(),
        key.name.as_str(),
        from_seq(head.seq),
        head.epoch.uuid().into_bytes(),
        holder_uuid(take.holder).into_bytes(),
        now.as_micros(),
    ]);
    match inserted.map_err(Failure::from) {
        Ok(_) => {}
        // The row names an agent that is gone.
        Err(failure) if failure.is_foreign_key() => return Err(StoreError::TenantInactive.into()),
        Err(failure) => return Err(failure),
    }
    Ok(CursorRow { acked: head.seq, epoch: head.epoch, holder: Some(take.holder), window_version: 1, window: RestWindow::default() })
}

fn change(tx: &WriteTx, take: &Take, head: &LogHead, found: CursorRow, now: Timestamp) -> Result<CursorRow, Failure> {
    let key = &take.key;
    let names = (key.tenant.as_str(), key.agent.as_str(), key.name.as_str());
    let (epoch, at) = (head.epoch.uuid(), now.as_micros());
    if found.holder == Some(take.holder) {
        tx.prepare(sql!("agents/retake"))?.execute(params![names.0, names.1, names.2, epoch.into_bytes(), at])?;
        return Ok(CursorRow { epoch: head.epoch, ..found });
    }
    let holder = holder_uuid(take.holder);
    tx.prepare(sql!("agents/change_holder"))?.execute(params![names.0, names.1, names.2, epoch.into_bytes(), at, holder.into_bytes()])?;
    Ok(CursorRow {
        acked: found.acked,
        epoch: head.epoch,
        holder: Some(take.holder),
        window_version: found.window_version + 1,
        window: RestWindow::default(),
    })
}
