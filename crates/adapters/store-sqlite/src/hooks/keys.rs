//! Keys of hooks. A secret is a sealed text to the store: it goes in and out as it is.

use domain::Timestamp;
use hooks::{HookId, HookKey, KeyId, KeyMaterial, Sealed, SealedRow};
use rusqlite::{Connection, Row, params};

use super::readable::{Table, all, some};
use super::registrations::{NO_HOOK, tenant_of};
use super::rows::{self, micros};
use crate::codec;
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::readers::ReadTx;
use crate::sql::sql;
use crate::tx::WriteTx;

/// The keys of a hook, newest first.
pub(super) fn keys(connection: &Connection, metrics: &StoreMetrics, hook: HookId) -> Result<Vec<HookKey>, Failure> {
    let mut statement = connection.prepare_cached(sql!("hooks/keys"))?;
    let mut keys = all(statement.query([hook.uuid().into_bytes()])?, Table::Keys, metrics, rows::key)?;
    // Of keys of the same instant the one that lasts longer is the newer one.
    keys.sort_by(|one, other| {
        let age = |key: &HookKey| (key.created_at, key.expires_at.is_none(), key.expires_at);
        age(other).cmp(&age(one)).then_with(|| other.id.cmp(&one.id))
    });
    Ok(keys)
}

/// Stores a key, replacing one of the same id.
pub(super) fn put(tx: &mut WriteTx, hook: HookId, key: &HookKey) -> Result<(), Failure> {
    let tenant = tenant_of(tx.connection(), hook)?.ok_or(NO_HOOK)?;
    tx.active_head(&tenant)?;
    let (secret, public) = match &key.material {
        KeyMaterial::Secret(sealed) => (Some(sealed.as_bytes()), None),
        KeyMaterial::Public(public) => (None, Some(public.parts())),
    };
    tx.prepare(sql!("hooks/put_key"))?.execute(params![
        hook.uuid().into_bytes(),
        key.id.as_str(),
        secret,
        public.map(|(algorithm, _)| algorithm),
        public.map(|(_, bytes)| bytes),
        key.created_at.as_micros(),
        micros(key.expires_at),
    ])?;
    Ok(())
}

/// Removes these keys of a hook.
pub(super) fn remove(tx: &WriteTx, hook: HookId, keys: &[KeyId]) -> Result<(), Failure> {
    let mut statement = tx.prepare(sql!("hooks/remove_key"))?;
    for key in keys {
        statement.execute(params![hook.uuid().into_bytes(), key.as_str()])?;
    }
    Ok(())
}

/// Removes keys that expired before `now`.
pub(super) fn purge(tx: &WriteTx, now: Timestamp, limit: usize) -> Result<u64, Failure> {
    let removed = tx.prepare(sql!("hooks/purge_keys"))?.execute(params![now.as_micros(), codec::from_count(limit)])?;
    Ok(removed as u64)
}

/// `hook_id, key_id, tenant_id, secret`.
fn sealed_row(row: &Row<'_>) -> Result<SealedRow, Failure> {
    let secret = row.get_ref(3)?.as_blob().map_err(|_| Failure::corrupt("a secret that is no bytes"))?;
    Ok(SealedRow {
        tenant: codec::text(row, 2)?,
        hook: rows::hook_id(row, 0)?,
        key: rows::key_id(row, 1)?,
        secret: Sealed::from_bytes(secret.to_vec()),
    })
}

/// Sealed secrets by (hook, key), strictly after `after`, at most `limit`.
pub(super) fn sealed(tx: &ReadTx, after: Option<(HookId, KeyId)>, limit: usize) -> Result<Vec<SealedRow>, Failure> {
    let (hook, key) = after.map_or((Vec::new(), String::new()), |(hook, key)| (hook.uuid().into_bytes().to_vec(), key.to_string()));
    let mut statement = tx.prepare(sql!("hooks/sealed"))?;
    some(statement.query(params![hook, key])?, Table::Keys, tx.metrics(), limit, |row| sealed_row(row).map(Some))
}

/// Replaces a sealed secret, if it still is what `was` says.
pub(super) fn reseal(tx: &WriteTx, was: &SealedRow, sealed: &Sealed) -> Result<bool, Failure> {
    let values = params![was.hook.uuid().into_bytes(), was.key.as_str(), was.tenant.as_str(), was.secret.as_bytes(), sealed.as_bytes()];
    Ok(tx.prepare(sql!("hooks/reseal"))?.execute(values)? > 0)
}
