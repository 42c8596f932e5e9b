//! How connections to the database are made.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreOptions;

/// Bytes of a database page. Events of half a kilobyte fill it without waste, and a commit writes few of them.
pub(crate) const PAGE_SIZE: u64 = 8192;
/// "DSTP": marks the file as this product's.
pub(crate) const APPLICATION_ID: i32 = 0x4453_5450;
/// More than there are statements, so that none is compiled twice.
const STATEMENTS: usize = 256;

/// A connection to a database that is there and that nothing is known of yet. [`prepare_writing`] makes it the one that writes.
pub(crate) fn existing(path: &Path, options: &StoreOptions) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, options, options.cache_bytes)
}

/// A connection that only reads.
pub(crate) fn reader(path: &Path, options: &StoreOptions) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, options, options.cache_bytes / 4)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A connection that moves the write-ahead log into the database.
pub(crate) fn checkpointer(path: &Path, options: &StoreOptions) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, options, options.cache_bytes / 16)?;
    durable(&connection)?;
    Ok(connection)
}

/// What is said to be written is on the medium.
fn durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)
}

/// How many frames of the write-ahead log make the bytes after which it is moved.
pub(crate) fn checkpoint_frames(options: &StoreOptions) -> usize {
    usize::try_from(options.wal_checkpoint_bytes / PAGE_SIZE).unwrap_or(usize::MAX).max(1)
}

/// Makes the empty file at `path` a database.
pub(crate) fn create(path: &Path, options: &StoreOptions) -> rusqlite::Result<Connection> {
    let connection = existing(path, options)?;
    connection.pragma_update(None, "page_size", i64::try_from(PAGE_SIZE).unwrap_or_default())?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    prepare_writing(&connection, options)?;
    Ok(connection)
}

fn open(path: &Path, flags: OpenFlags, options: &StoreOptions, cache_bytes: u64) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(options.busy_timeout)?;
    let kibibytes = i64::try_from(cache_bytes / 1024).unwrap_or(i64::MAX);
    connection.pragma_update(None, "cache_size", -kibibytes)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // A plan is the statement's alone. Otherwise each that a partial index might serve is compiled anew whenever values are bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Sets up a connection for durable commits through the write-ahead log.
pub(crate) fn prepare_writing(connection: &Connection, options: &StoreOptions) -> rusqlite::Result<()> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(rusqlite::Error::InvalidQuery);
    }
    durable(connection)?;
    if let Some(bytes) = options.max_bytes {
        let pages = i64::try_from(bytes / PAGE_SIZE).unwrap_or(i64::MAX).max(1);
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    let limit = i64::try_from(options.wal_checkpoint_bytes.saturating_mul(2)).unwrap_or(i64::MAX);
    connection.pragma_update_and_check(None, "journal_size_limit", limit, |_| Ok(()))
}
