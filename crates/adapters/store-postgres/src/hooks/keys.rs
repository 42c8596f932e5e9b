//! Keys of hooks. A secret is a sealed text to the store: it goes in and out as it is.

use std::collections::BTreeMap;

use domain::Timestamp;
use hooks::{HookId, HookKey, KeyId, KeyMaterial, Sealed, SealedRow};
use uuid::Uuid;

use super::locks::lock;
use super::readable::{Table, all, bounds, is_enough, readable};
use super::registrations::NO_HOOK;
use super::rows::{self, micros};
use crate::codec;
use crate::db::{self, PgRow, Session};
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

/// The keys of hooks, each hook's newest first.
pub(super) async fn of_hooks(
    connection: &mut Session,
    metrics: &StoreMetrics,
    hooks: Vec<Uuid>,
) -> Result<BTreeMap<HookId, Vec<HookKey>>, Failure> {
    let rows = db::query(sql!("hooks/keys")).bind(hooks).fetch_all(connection).await?;
    let mut keys: BTreeMap<HookId, Vec<HookKey>> = BTreeMap::new();
    for row in &rows {
        if let Some(key) = readable(row, rows::key(row), Table::Keys, metrics)? {
            keys.entry(rows::hook_id(row, 0)?).or_default().push(key);
        }
    }
    for keys in keys.values_mut() {
        // Of keys of the same instant the one that lasts longer is the newer one.
        keys.sort_by(|one, other| {
            let age = |key: &HookKey| (key.created_at, key.expires_at.is_none(), key.expires_at);
            age(other).cmp(&age(one)).then_with(|| other.id.cmp(&one.id))
        });
    }
    Ok(keys)
}

/// The keys of one hook, newest first.
pub(super) async fn keys(connection: &mut Session, metrics: &StoreMetrics, hook: HookId) -> Result<Vec<HookKey>, Failure> {
    Ok(of_hooks(connection, metrics, vec![hook.uuid()]).await?.remove(&hook).unwrap_or_default())
}

/// The keys of one hook as a transaction sees them, newest first.
pub(super) async fn keys_in(tx: &mut WriteTx, hook: HookId) -> Result<Vec<HookKey>, Failure> {
    let shared = std::sync::Arc::clone(tx.shared());
    keys(tx.connection(), &shared.metrics, hook).await
}

/// Stores a key, replacing one of the same id.
pub(super) async fn put(tx: &mut WriteTx, hook: HookId, key: &HookKey) -> Result<(), Failure> {
    let tenant = lock(tx, hook).await?.ok_or(NO_HOOK)?;
    tx.active_head(&tenant).await?;
    let (secret, public) = match &key.material {
        KeyMaterial::Secret(sealed) => (Some(sealed.as_bytes()), None),
        KeyMaterial::Public(public) => (None, Some(public.parts())),
    };
    db::query(sql!("hooks/put_key"))
        .bind(tenant.as_str())
        .bind(hook.uuid())
        .bind(key.id.as_str())
        .bind(secret)
        .bind(public.map(|(algorithm, _)| algorithm))
        .bind(public.map(|(_, bytes)| bytes))
        .bind(key.created_at.as_micros())
        .bind(micros(key.expires_at))
        .execute(tx.connection())
        .await?;
    Ok(())
}

/// Removes these keys of a hook.
pub(super) async fn remove(tx: &mut WriteTx, hook: HookId, keys: &[KeyId]) -> Result<(), Failure> {
    let keys: Vec<&str> = keys.iter().map(KeyId::as_str).collect();
    db::query(sql!("hooks/remove_keys")).bind(hook.uuid()).bind(keys).execute(tx.connection()).await?;
    Ok(())
}

/// Removes keys that expired before `now`. Those that somebody else is removing are theirs.
pub(super) async fn purge(tx: &mut WriteTx, now: Timestamp, limit: usize) -> Result<u64, Failure> {
    let purge = db::query(sql!("hooks/purge_keys")).bind(now.as_micros()).bind(codec::from_count(limit));
    Ok(purge.execute(tx.connection()).await?.rows_affected())
}

/// `hook_id, key_id, tenant_id, secret`.
fn sealed_row(row: &PgRow) -> Result<SealedRow, Failure> {
    Ok(SealedRow {
        tenant: codec::text(row, 2)?,
        hook: rows::hook_id(row, 0)?,
        key: rows::key_id(row, 1)?,
        secret: Sealed::from_bytes(codec::get(row, 3)?),
    })
}

/// Sealed secrets by (hook, key), strictly after `after`, at most `limit`.
pub(super) async fn sealed(
    connection: &mut Session,
    metrics: &StoreMetrics,
    after: Option<(HookId, &KeyId)>,
    limit: usize,
) -> Result<Vec<SealedRow>, Failure> {
    let (hook, key) = after.map_or((Uuid::nil(), ""), |(hook, key)| (hook.uuid(), key.as_str()));
    let mut found = Vec::new();
    for bound in bounds(limit) {
        let sealed = db::query(sql!("hooks/sealed")).bind(hook).bind(key).bind(codec::from_count(bound));
        let rows = sealed.fetch_all(&mut *connection).await?;
        found = all(&rows, Table::Keys, metrics, sealed_row)?;
        if is_enough(found.len(), rows.len(), bound, limit) {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// Replaces a sealed secret, if it still is what `was` says.
pub(super) async fn reseal(tx: &mut WriteTx, was: &SealedRow, sealed: &Sealed) -> Result<bool, Failure> {
    let resealed = db::query(sql!("hooks/reseal"))
        .bind(was.tenant.as_str())
        .bind(was.hook.uuid())
        .bind(was.key.as_str())
        .bind(was.secret.as_bytes())
        .bind(sealed.as_bytes())
        .execute(tx.connection())
        .await?;
    Ok(resealed.rows_affected() > 0)
}
