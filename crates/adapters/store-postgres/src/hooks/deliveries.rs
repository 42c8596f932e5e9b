//! Rings on their way. Whatever changes them has the hook's `next_due` follow, so that what is due is found without looking at each.

use std::sync::Arc;

use domain::{TenantId, Timestamp};
use hooks::{Delivery, HookId, WebhookId};
use uuid::Uuid;

use super::locks::{Locked, lock, lock_all};
use super::readable::{Table, all, bounds, is_enough};
use super::rows;
use crate::codec;
use crate::db::{self, Session};
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

/// The rings of a hook that are due by `now`, the longest due first, at most `limit`.
pub(super) async fn due(
    connection: &mut Session,
    metrics: &StoreMetrics,
    tenant: &TenantId,
    hook: HookId,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Delivery>, Failure> {
    let mut found = Vec::new();
    for bound in bounds(limit) {
        let due = db::query(sql!("hooks/deliveries")).bind(tenant.as_str()).bind(hook.uuid()).bind(now.as_micros());
        let rows = due.bind(codec::from_count(bound)).fetch_all(&mut *connection).await?;
        found = all(&rows, Table::Deliveries, metrics, |row| rows::delivery(row, tenant))?;
        if is_enough(found.len(), rows.len(), bound, limit) {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// The rings of a hook, the longest due first, at most `limit`.
pub(super) async fn outstanding(tx: &mut WriteTx, hook: HookId, limit: usize) -> Result<Vec<Delivery>, Failure> {
    let Some(tenant) = lock(tx, hook).await? else { return Ok(Vec::new()) };
    let shared = Arc::clone(tx.shared());
    due(tx.connection(), &shared.metrics, &tenant, hook, Timestamp::from_micros(i64::MAX), limit).await
}

/// One ring.
pub(super) async fn find(tx: &mut WriteTx, hook: HookId, id: &WebhookId) -> Result<Option<Delivery>, Failure> {
    let Some(tenant) = lock(tx, hook).await? else { return Ok(None) };
    let find = db::query(sql!("hooks/delivery")).bind(tenant.as_str()).bind(hook.uuid()).bind(id.as_str());
    let rows = find.fetch_all(tx.connection()).await?;
    Ok(all(&rows, Table::Deliveries, tx.metrics(), |row| rows::delivery(row, &tenant))?.pop())
}

/// How many rings each of these hooks has; those without one are left out.
pub(super) async fn counts(tx: &mut WriteTx, hooks: &[HookId]) -> Result<Vec<(HookId, u64)>, Failure> {
    let Locked { tenants, hooks } = lock_all(tx, hooks.iter().copied()).await?;
    let rows = db::query(sql!("hooks/outstanding")).bind(tenants).bind(hooks).fetch_all(tx.connection()).await?;
    rows.iter().map(|row| Ok((rows::hook_id(row, 0)?, codec::natural(row, 1)?))).collect()
}

/// Stores rings that are not there; answers how many that were.
pub(super) async fn add(tx: &mut WriteTx, deliveries: &[Delivery]) -> Result<u64, Failure> {
    let locked = lock_all(tx, deliveries.iter().map(|ring| ring.hook)).await?;
    let rings = deliveries.iter().filter(|ring| locked.tenant_of(ring.hook) == Some(ring.tenant.as_str()));
    let rings: Vec<&Delivery> = rings.collect();
    for ring in &rings {
        tx.active_head(&ring.tenant).await?;
    }
    let added = db::query(sql!("hooks/add_deliveries"))
        .bind(column(&rings, |ring| ring.tenant.as_str()))
        .bind(column(&rings, |ring| ring.hook.uuid()))
        .bind(column(&rings, |ring| ring.id.as_str()))
        .bind(column(&rings, |ring| ring.reason.as_str()))
        .bind(column(&rings, |ring| codec::from_seq(ring.cause)))
        .bind(column(&rings, |ring| ring.event.map(domain::EventId::uuid)))
        .bind(column(&rings, |ring| ring.queue.as_ref().map(domain::QueueName::as_str)))
        .bind(column(&rings, |ring| i64::from(ring.attempts)))
        .bind(column(&rings, |ring| ring.next_at.as_micros()))
        .bind(column(&rings, |ring| ring.created_at.as_micros()))
        .execute(tx.connection())
        .await?;
    follow(tx, locked).await?;
    Ok(added.rows_affected())
}

/// Writes what changes of rings that are there.
pub(super) async fn save(tx: &mut WriteTx, deliveries: &[Delivery]) -> Result<(), Failure> {
    let locked = lock_all(tx, deliveries.iter().map(|ring| ring.hook)).await?;
    let rings: Vec<(&str, &Delivery)> = deliveries.iter().filter_map(|ring| Some((locked.tenant_of(ring.hook)?, ring))).collect();
    db::query(sql!("hooks/save_deliveries"))
        .bind(rings.iter().map(|(tenant, _)| *tenant).collect::<Vec<_>>())
        .bind(rings.iter().map(|(_, ring)| ring.hook.uuid()).collect::<Vec<_>>())
        .bind(rings.iter().map(|(_, ring)| ring.id.as_str()).collect::<Vec<_>>())
        .bind(rings.iter().map(|(_, ring)| codec::from_seq(ring.cause)).collect::<Vec<_>>())
        .bind(rings.iter().map(|(_, ring)| i64::from(ring.attempts)).collect::<Vec<_>>())
        .bind(rings.iter().map(|(_, ring)| ring.next_at.as_micros()).collect::<Vec<_>>())
        .execute(tx.connection())
        .await?;
    follow(tx, locked).await
}

/// Removes these rings of a hook.
pub(super) async fn remove(tx: &mut WriteTx, hook: HookId, ids: &[WebhookId]) -> Result<(), Failure> {
    let Some(tenant) = lock(tx, hook).await? else { return Ok(()) };
    let ids: Vec<&str> = ids.iter().map(WebhookId::as_str).collect();
    let remove = db::query(sql!("hooks/remove_deliveries")).bind(tenant.as_str()).bind(hook.uuid()).bind(ids);
    remove.execute(tx.connection()).await?;
    follow(tx, one(&tenant, hook)).await
}

/// Removes every ring of a hook; answers how many there were.
pub(super) async fn clear(tx: &mut WriteTx, hook: HookId) -> Result<u64, Failure> {
    let Some(tenant) = lock(tx, hook).await? else { return Ok(0) };
    let removed = db::query(sql!("hooks/clear_deliveries")).bind(tenant.as_str()).bind(hook.uuid()).execute(tx.connection()).await?;
    follow(tx, one(&tenant, hook)).await?;
    Ok(removed.rows_affected())
}

fn one(tenant: &TenantId, hook: HookId) -> Locked {
    Locked { tenants: vec![tenant.to_string()], hooks: vec![hook.uuid()] }
}

fn column<'a, T>(rings: &[&'a Delivery], read: impl Fn(&'a Delivery) -> T) -> Vec<T> {
    rings.iter().map(|ring| read(ring)).collect()
}

async fn follow(tx: &mut WriteTx, locked: Locked) -> Result<(), Failure> {
    let (tenants, hooks): (Vec<String>, Vec<Uuid>) = (locked.tenants, locked.hooks);
    db::query(sql!("hooks/follow_rings")).bind(tenants).bind(hooks).execute(tx.connection()).await?;
    Ok(())
}
