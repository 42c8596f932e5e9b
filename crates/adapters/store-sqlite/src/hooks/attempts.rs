//! The delivery log: the last attempts of each hook.

use hooks::{AttemptRecord, HookId};
use rusqlite::params;

use super::readable::{Table, some};
use super::registrations::tenant_of;
use super::rows;
use crate::codec;
use crate::failure::Failure;
use crate::readers::ReadTx;
use crate::sql::sql;
use crate::tx::WriteTx;

/// The last attempts of a hook, newest first, at most `limit`.
pub(super) fn last(tx: &ReadTx, hook: HookId, limit: usize) -> Result<Vec<AttemptRecord>, Failure> {
    let mut statement = tx.prepare(sql!("hooks/attempts"))?;
    let rows = statement.query([hook.uuid().into_bytes()])?;
    some(rows, Table::Attempts, tx.metrics(), limit, |row| rows::attempt(row).map(Some))
}

/// Notes attempts, and forgets all but the last `keep` of each of their hooks.
pub(super) fn log(tx: &mut WriteTx, attempts: &[(HookId, AttemptRecord)], keep: usize) -> Result<(), Failure> {
    for (hook, attempt) in attempts {
        let Some(tenant) = tenant_of(tx.connection(), *hook)? else { continue };
        tx.active_head(&tenant)?;
        insert(tx, *hook, attempt)?;
        tx.prepare(sql!("hooks/forget_attempts"))?.execute(params![hook.uuid().into_bytes(), codec::from_count(keep)])?;
    }
    Ok(())
}

fn insert(tx: &WriteTx, hook: HookId, attempt: &AttemptRecord) -> Result<(), Failure> {
    tx.prepare(sql!("hooks/log_attempt"))?.execute(params![
        hook.uuid().into_bytes(),
        attempt.id.as_str(),
        attempt.reason.as_str(),
        attempt.event.map(|event| event.uuid().into_bytes()),
        attempt.attempt,
        attempt.at.as_micros(),
        i64::try_from(attempt.latency.as_micros()).unwrap_or(i64::MAX),
        attempt.status,
        attempt.class.as_str(),
    ])?;
    Ok(())
}
