//! The server's own signing keys.

use hooks::{KeyId, ServerKey};
use rusqlite::{Connection, params};

use super::readable::{Table, all};
use super::rows;
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

/// All of them, by when they begin to sign.
pub(super) fn list(connection: &Connection, metrics: &StoreMetrics) -> Result<Vec<ServerKey>, Failure> {
    let mut statement = connection.prepare_cached(sql!("hooks/server_keys"))?;
    let mut keys = all(statement.query([])?, Table::ServerKeys, metrics, rows::server_key)?;
    keys.sort_by(|one, other| (one.signs_from, &one.id).cmp(&(other.signs_from, &other.id)));
    Ok(keys)
}

/// Stores one, replacing one of the same id.
pub(super) fn put(tx: &WriteTx, key: &ServerKey) -> Result<(), Failure> {
    let values = params![key.id.as_str(), key.public, key.pair.as_bytes(), key.signs_from.as_micros()];
    tx.prepare(sql!("hooks/put_server_key"))?.execute(values)?;
    Ok(())
}

/// Removes one.
pub(super) fn remove(tx: &WriteTx, id: &KeyId) -> Result<(), Failure> {
    tx.prepare(sql!("hooks/remove_server_key"))?.execute([id.as_str()])?;
    Ok(())
}
