//! What is due: tenants take turns, so that nobody's many rings keep another's waiting.

use std::collections::HashMap;

use domain::{TenantId, Timestamp};
use hooks::{Delivery, DueHook, DueQuery, GroupNumber, Hook, HookId};

use super::readable::{Table, readable};
use super::{deliveries, dispatch, keys, rows};
use crate::codec;
use crate::db::{self, Session};
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;

/// One hook of each tenant in turn, until there are enough.
pub(super) async fn due(connection: &mut Session, metrics: &StoreMetrics, query: &DueQuery<'_>) -> Result<Vec<DueHook>, Failure> {
    let mut found: Vec<DueHook> = Vec::new();
    if query.per_hook == 0 {
        return Ok(found);
    }
    let mut seen: Vec<uuid::Uuid> = query.except.iter().map(|hook| hook.uuid()).collect();
    // Again only when some of what was found cannot be read.
    while found.len() < query.hooks {
        let wanted = query.hooks - found.len();
        let hooks = hooks(connection, metrics, query, &mut seen, wanted).await?;
        let is_last = hooks.is_last;
        found.extend(filled(connection, metrics, query, hooks.readable).await?);
        if is_last {
            break;
        }
    }
    Ok(found)
}

struct Found {
    readable: Vec<(Hook, GroupNumber)>,
    /// Whether there are no more.
    is_last: bool,
}

async fn hooks(
    connection: &mut Session,
    metrics: &StoreMetrics,
    query: &DueQuery<'_>,
    seen: &mut Vec<uuid::Uuid>,
    limit: usize,
) -> Result<Found, Failure> {
    let rows = db::query(sql!("union/hooks_due"))
        .bind(query.now.as_micros())
        .bind(dispatch::numbers(query.groups))
        .bind(seen.clone())
        .bind(query.except_tenants.iter().map(TenantId::as_str).collect::<Vec<_>>())
        .bind(codec::from_count(limit))
        .fetch_all(connection)
        .await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        seen.push(codec::uuid(row, 0)?);
        let hook = rows::hook(row).and_then(|hook| Ok((hook, dispatch::group(row, 20)?)));
        found.extend(readable(row, hook, Table::Hooks, metrics)?);
    }
    Ok(Found { readable: found, is_last: rows.len() < limit })
}

/// With their rings and keys; those of which no ring can be read are left out.
async fn filled(
    connection: &mut Session,
    metrics: &StoreMetrics,
    query: &DueQuery<'_>,
    hooks: Vec<(Hook, GroupNumber)>,
) -> Result<Vec<DueHook>, Failure> {
    if hooks.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = hooks.iter().map(|(hook, _)| hook.id.uuid()).collect();
    let mut rings = rings(connection, metrics, query, &hooks).await?;
    let mut keys = keys::of_hooks(connection, metrics, ids).await?;
    let filled = hooks.into_iter().filter_map(|(hook, group)| {
        let deliveries = rings.remove(&hook.id)?;
        let keys = keys.remove(&hook.id).unwrap_or_default();
        Some(DueHook { hook, group, keys, deliveries })
    });
    Ok(filled.collect())
}

async fn rings(
    connection: &mut Session,
    metrics: &StoreMetrics,
    query: &DueQuery<'_>,
    hooks: &[(Hook, GroupNumber)],
) -> Result<HashMap<HookId, Vec<Delivery>>, Failure> {
    let rows = db::query(sql!("hooks/deliveries_of"))
        .bind(hooks.iter().map(|(hook, _)| hook.tenant.as_str()).collect::<Vec<_>>())
        .bind(hooks.iter().map(|(hook, _)| hook.id.uuid()).collect::<Vec<_>>())
        .bind(query.now.as_micros())
        .bind(codec::from_count(query.per_hook))
        .fetch_all(&mut *connection)
        .await?;
    let tenants: HashMap<HookId, &TenantId> = hooks.iter().map(|(hook, _)| (hook.id, &hook.tenant)).collect();
    let (mut rings, mut damaged): (HashMap<HookId, Vec<Delivery>>, Vec<HookId>) = (HashMap::new(), Vec::new());
    for row in &rows {
        let hook = rows::hook_id(row, 0)?;
        let Some(tenant) = tenants.get(&hook) else { continue };
        match readable(row, rows::delivery(row, tenant), Table::Deliveries, metrics)? {
            Some(ring) => rings.entry(hook).or_default().push(ring),
            None => damaged.push(hook),
        }
    }
    for hook in damaged {
        let Some(tenant) = tenants.get(&hook) else { continue };
        let read = deliveries::due(connection, metrics, tenant, hook, query.now, query.per_hook).await?;
        if !read.is_empty() {
            rings.insert(hook, read);
        }
    }
    Ok(rings)
}

/// When the first ring of an active tenant of these groups is due.
pub(super) async fn next_due(connection: &mut Session, groups: &[GroupNumber]) -> Result<Option<Timestamp>, Failure> {
    let row = db::query(sql!("union/hooks_next_due")).bind(dispatch::numbers(groups)).fetch_one(connection).await?;
    codec::optional_timestamp(&row, 0)
}
