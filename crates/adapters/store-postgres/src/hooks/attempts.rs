//! The delivery log: the last attempts of each hook.

use domain::EventId;
use hooks::{AttemptRecord, HookId};

use super::locks::lock_all;
use super::readable::{Table, all, bounds, is_enough};
use super::rows;
use crate::codec;
use crate::db::{self, Session};
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

/// The last attempts of a hook, newest first, at most `limit`.
pub(super) async fn last(
    connection: &mut Session,
    metrics: &StoreMetrics,
    hook: HookId,
    limit: usize,
) -> Result<Vec<AttemptRecord>, Failure> {
    let mut found = Vec::new();
    for bound in bounds(limit) {
        let last = db::query(sql!("hooks/attempts")).bind(hook.uuid()).bind(codec::from_count(bound));
        let rows = last.fetch_all(&mut *connection).await?;
        found = all(&rows, Table::Attempts, metrics, rows::attempt)?;
        if is_enough(found.len(), rows.len(), bound, limit) {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// Notes attempts, and forgets all but the last `keep` of each of their hooks.
pub(super) async fn log(tx: &mut WriteTx, attempts: &[(HookId, AttemptRecord)], keep: usize) -> Result<(), Failure> {
    if attempts.is_empty() {
        return Ok(());
    }
    let locked = lock_all(tx, attempts.iter().map(|(hook, _)| *hook)).await?;
    for tenant in &locked.tenants {
        let tenant = tenant.parse().map_err(|_| Failure::corrupt("a hook of a tenant without a name"))?;
        tx.active_head(&tenant).await?;
    }
    let rows = attempts.iter().filter_map(|(hook, attempt)| Some((locked.tenant_of(*hook)?, *hook, attempt)));
    let rows: Vec<(&str, HookId, &AttemptRecord)> = rows.collect();
    db::query(sql!("hooks/log_attempts"))
        .bind(rows.iter().map(|(tenant, ..)| *tenant).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, hook, _)| hook.uuid()).collect::<Vec<_>>())
        .bind(column(&rows, |attempt| attempt.id.as_str()))
        .bind(column(&rows, |attempt| attempt.reason.as_str()))
        .bind(column(&rows, |attempt| attempt.event.map(EventId::uuid)))
        .bind(column(&rows, |attempt| i64::from(attempt.attempt)))
        .bind(column(&rows, |attempt| attempt.at.as_micros()))
        .bind(column(&rows, |attempt| i64::try_from(attempt.latency.as_micros()).unwrap_or(i64::MAX)))
        .bind(column(&rows, |attempt| attempt.status.map(i32::from)))
        .bind(column(&rows, |attempt| attempt.class.as_str()))
        .execute(tx.connection())
        .await?;
    let forget = db::query(sql!("hooks/forget_attempts")).bind(locked.tenants).bind(locked.hooks);
    forget.bind(codec::from_count(keep)).execute(tx.connection()).await?;
    Ok(())
}

fn column<'a, T>(rows: &[(&str, HookId, &'a AttemptRecord)], read: impl Fn(&'a AttemptRecord) -> T) -> Vec<T> {
    rows.iter().map(|(_, _, attempt)| read(attempt)).collect()
}
