//! The server's own signing keys.

use hooks::{KeyId, ServerKey};

use super::readable::{Table, all};
use super::rows;
use crate::db::{self, Session};
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

/// All of them, by when they begin to sign.
pub(super) async fn list(connection: &mut Session, metrics: &StoreMetrics) -> Result<Vec<ServerKey>, Failure> {
    let rows = db::query(sql!("hooks/server_keys")).fetch_all(connection).await?;
    all(&rows, Table::ServerKeys, metrics, rows::server_key)
}

/// The same for whoever changes them: nobody else does until the transaction ends, also while there is none yet.
pub(super) async fn lock(tx: &mut WriteTx) -> Result<Vec<ServerKey>, Failure> {
    db::query(sql!("hooks/lock_server_keys")).execute(tx.connection()).await?;
    let shared = std::sync::Arc::clone(tx.shared());
    list(tx.connection(), &shared.metrics).await
}

/// Stores one, replacing one of the same id.
pub(super) async fn put(tx: &mut WriteTx, key: &ServerKey) -> Result<(), Failure> {
    let put = db::query(sql!("hooks/put_server_key")).bind(key.id.as_str()).bind(&key.public).bind(key.pair.as_bytes());
    put.bind(key.signs_from.as_micros()).execute(tx.connection()).await?;
    Ok(())
}

/// Removes one.
pub(super) async fn remove(tx: &mut WriteTx, id: &KeyId) -> Result<(), Failure> {
    db::query(sql!("hooks/remove_server_key")).bind(id.as_str()).execute(tx.connection()).await?;
    Ok(())
}
