//! Opening the database: is it ours, is it one we know, does it hold together.

use std::path::Path;

use domain::{Seq, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use crate::StoreOptions;
use crate::codec::{self, Position};
use crate::connection;
use crate::directory::{Directory, create_private_file, remove_database, write_ahead_log};
use crate::failure::{Failure, OpenError};
use crate::log;
use crate::migrations;
use crate::sql::sql;
use crate::wal;

/// Opens the database of `directory` for writing, makes it when there is none, and checks it.
pub(crate) fn open(directory: &Directory, options: &StoreOptions, now: Timestamp) -> Result<Connection, OpenError> {
    let path = directory.database();
    let present = path.try_exists().map_err(|error| OpenError::Directory { path: path.clone(), reason: error.to_string() })?;
    if !present {
        create(directory, options, now)?;
    }
    let mut connection = connect(&path, options)?;
    migrations::migrate(&mut connection, &path, now)?;
    check_heads(&connection, &path)?;
    Ok(connection)
}

/// Makes the database under another name first, so that a half-made one is never taken for an emptied one.
fn create(directory: &Directory, options: &StoreOptions, now: Timestamp) -> Result<(), OpenError> {
    let path = directory.database();
    if write_ahead_log(&path).exists() {
        let reason = "the database file is gone, but its write-ahead log is there".to_owned();
        return Err(OpenError::Corrupt { path, reason });
    }
    let unfinished = directory.unfinished();
    let refused = |error: std::io::Error| OpenError::Directory { path: unfinished.clone(), reason: error.to_string() };
    remove_database(&unfinished).map_err(refused)?;
    create_private_file(&unfinished).map_err(refused)?;
    let mut connection = connection::create(&unfinished, options).map_err(|error| OpenError::from_sqlite(&path, &error))?;
    migrations::migrate(&mut connection, &path, now)?;
    connection.close().map_err(|(_, error)| OpenError::from_sqlite(&path, &error))?;
    directory.adopt(&unfinished).map_err(refused)
}

/// Connects to a database that is there, and is a store of this product. Asks whose it is before anything about it is changed.
pub(crate) fn connect(path: &Path, options: &StoreOptions) -> Result<Connection, OpenError> {
    let failed = |error| OpenError::from_sqlite(path, &error);
    let unusable = |error: std::io::Error| OpenError::Directory { path: path.to_path_buf(), reason: error.to_string() };
    if std::fs::metadata(path).map_err(unusable)?.len() == 0 {
        return Err(OpenError::Corrupt { path: path.to_path_buf(), reason: "the database file is empty".to_owned() });
    }
    if wal::is_broken_inside(&write_ahead_log(path)).map_err(unusable)? {
        let reason = "its write-ahead log is broken before its end".to_owned();
        return Err(OpenError::Corrupt { path: path.to_path_buf(), reason });
    }
    let connection = connection::existing(path, options).map_err(failed)?;
    identify(&connection, path)?;
    connection::prepare_writing(&connection, options).map_err(failed)?;
    Ok(connection)
}

/// Whether the database at `path` is a store of this product.
pub(crate) fn identify(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |error| OpenError::from_sqlite(path, &error);
    let found: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(failed)?;
    if found == connection::APPLICATION_ID {
        return Ok(());
    }
    Err(OpenError::NotAStore { path: path.to_path_buf(), reason: format!("it is the database of another application (id {found:#010x})") })
}

/// Holds every head row against the rows that it speaks of: the last, the lowest, and none beyond. A few look-ups per tenant, whatever the size.
fn check_heads(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    match contradiction(connection) {
        Ok(None) => Ok(()),
        Ok(Some(reason)) => Err(OpenError::Corrupt { path: path.to_path_buf(), reason }),
        Err(Failure::Sqlite(error)) => Err(OpenError::from_sqlite(path, &error)),
        Err(Failure::Store(error)) => Err(OpenError::Corrupt { path: path.to_path_buf(), reason: error.to_string() }),
    }
}

fn contradiction(connection: &Connection) -> Result<Option<String>, Failure> {
    let mut heads = connection.prepare(sql!("sync/all_heads"))?;
    let mut highest = connection.prepare(sql!("sync/highest_row"))?;
    let mut rows = heads.query([])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let tenant: String = row.get(1)?;
        let (head, floor) = (codec::seq(row, 2)?, codec::seq(row, 3)?);
        let values = params![Position::before(number), Position::after(number)];
        let last: Option<i64> = highest.query_row(values, |row| row.get(0)).optional()?.flatten();
        let last = last.map_or(Seq::ZERO, |position| Position::from_raw(position).seq());
        if floor == Seq::ZERO || floor > head.next() || (head >= floor && last != head) || last > head {
            return Ok(Some(format!("the log of tenant {tenant} ends at {last}, but its head row says {head} with floor {floor}")));
        }
        let retained = if floor <= head { [Some(floor), Some(head)] } else { [None, None] };
        for seq in retained.into_iter().flatten() {
            if !log::row_is_sound(connection, Position::new(number, seq)?)? {
                return Ok(Some(format!("event {seq} of tenant {tenant} is damaged or missing")));
            }
        }
    }
    Ok(None)
}
