//! Rings on their way. Whatever changes them has the hook's `next_due` follow, so that what is due is found without looking at each.

use std::collections::BTreeMap;

use domain::{TenantId, Timestamp};
use hooks::{Delivery, HookId, WebhookId};
use rusqlite::{Connection, params};

use super::readable::{Table, one, some};
use super::registrations::tenant_of;
use super::rows;
use crate::codec;
use crate::failure::Failure;
use crate::identity::first;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

/// The rings of a hook that are due by `now`, the longest due first, at most `limit`.
pub(super) fn due(
    connection: &Connection,
    metrics: &StoreMetrics,
    tenant: &TenantId,
    hook: HookId,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Delivery>, Failure> {
    let mut statement = connection.prepare_cached(sql!("hooks/deliveries"))?;
    let rows = statement.query(params![hook.uuid().into_bytes(), now.as_micros()])?;
    some(rows, Table::Deliveries, metrics, limit, |row| rows::delivery(row, tenant).map(Some))
}

/// The rings of a hook, the longest due first, at most `limit`.
pub(super) fn outstanding(tx: &WriteTx, hook: HookId, limit: usize) -> Result<Vec<Delivery>, Failure> {
    let Some(tenant) = tenant_of(tx.connection(), hook)? else { return Ok(Vec::new()) };
    due(tx.connection(), tx.metrics(), &tenant, hook, Timestamp::from_micros(i64::MAX), limit)
}

/// One ring.
pub(super) fn find(tx: &WriteTx, hook: HookId, id: &WebhookId) -> Result<Option<Delivery>, Failure> {
    let Some(tenant) = tenant_of(tx.connection(), hook)? else { return Ok(None) };
    let mut statement = tx.prepare(sql!("hooks/delivery"))?;
    let rows = statement.query(params![hook.uuid().into_bytes(), id.as_str()])?;
    one(rows, Table::Deliveries, tx.metrics(), |row| rows::delivery(row, &tenant))
}

/// How many rings each of these hooks has; those without one are left out.
pub(super) fn counts(tx: &WriteTx, hooks: &[HookId]) -> Result<Vec<(HookId, u64)>, Failure> {
    let mut statement = tx.prepare(sql!("hooks/outstanding"))?;
    let mut counts = BTreeMap::new();
    for hook in hooks {
        let count = first(statement.query([hook.uuid().into_bytes()])?, |row| codec::natural(row, 0))?;
        counts.insert(*hook, count.unwrap_or_default());
    }
    Ok(counts.into_iter().filter(|(_, count)| *count > 0).collect())
}

/// Stores rings that are not there; answers how many that were.
pub(super) fn add(tx: &mut WriteTx, deliveries: &[Delivery]) -> Result<u64, Failure> {
    let mut new = 0;
    for (hook, rings) in by_hook(deliveries) {
        let Some(tenant) = tenant_of(tx.connection(), hook)? else { continue };
        for ring in rings.into_iter().filter(|ring| ring.tenant == tenant) {
            tx.active_head(&tenant)?;
            new += insert(tx, ring)?;
        }
        follow(tx, hook)?;
    }
    Ok(new as u64)
}

fn insert(tx: &WriteTx, ring: &Delivery) -> Result<usize, Failure> {
    let added = tx.prepare(sql!("hooks/add_delivery"))?.execute(params![
        ring.hook.uuid().into_bytes(),
        ring.id.as_str(),
        ring.reason.as_str(),
        codec::from_seq(ring.cause),
        ring.event.map(|event| event.uuid().into_bytes()),
        ring.queue.as_ref().map(domain::QueueName::as_str),
        ring.attempts,
        ring.next_at.as_micros(),
        ring.created_at.as_micros(),
    ])?;
    Ok(added)
}

/// Writes what changes of rings that are there.
pub(super) fn save(tx: &WriteTx, deliveries: &[Delivery]) -> Result<(), Failure> {
    for (hook, rings) in by_hook(deliveries) {
        let mut statement = tx.prepare(sql!("hooks/save_delivery"))?;
        for ring in rings {
            let (cause, next_at) = (codec::from_seq(ring.cause), ring.next_at.as_micros());
            statement.execute(params![hook.uuid().into_bytes(), ring.id.as_str(), cause, ring.attempts, next_at])?;
        }
        follow(tx, hook)?;
    }
    Ok(())
}

/// Removes these rings of a hook.
pub(super) fn remove(tx: &WriteTx, hook: HookId, ids: &[WebhookId]) -> Result<(), Failure> {
    let mut statement = tx.prepare(sql!("hooks/remove_delivery"))?;
    for id in ids {
        statement.execute(params![hook.uuid().into_bytes(), id.as_str()])?;
    }
    follow(tx, hook)
}

/// Removes every ring of a hook; answers how many there were.
pub(super) fn clear(tx: &WriteTx, hook: HookId) -> Result<u64, Failure> {
    let removed = tx.prepare(sql!("hooks/clear_deliveries"))?.execute([hook.uuid().into_bytes()])?;
    follow(tx, hook)?;
    Ok(removed as u64)
}

/// Rings side by side with those of the same hook, in the order given.
fn by_hook(deliveries: &[Delivery]) -> BTreeMap<HookId, Vec<&Delivery>> {
    let mut hooks: BTreeMap<HookId, Vec<&Delivery>> = BTreeMap::new();
    for ring in deliveries {
        hooks.entry(ring.hook).or_default().push(ring);
    }
    hooks
}

fn follow(tx: &WriteTx, hook: HookId) -> Result<(), Failure> {
    tx.prepare(sql!("hooks/follow_rings"))?.execute([hook.uuid().into_bytes()])?;
    Ok(())
}
