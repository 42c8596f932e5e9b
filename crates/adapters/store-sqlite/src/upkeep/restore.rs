//! Putting a backup in the place of a store.
//!
//! The restored log ends where the backup's ended, and `seq` goes on from there: numbers above it may be given to other events than before.
//! Every tenant's log therefore gets a new epoch, by which readers tell the two histories apart, and no durable cursor stays above the head.

use std::path::Path;

use domain::{Clock, IdGenerator, Timestamp};
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use super::backup::contents;
use super::check::{Depth, check};
use super::{UpkeepError, at};
use crate::StoreOptions;
use crate::connection;
use crate::directory::{Directory, create_private_file, remove_database};
use crate::migrations;
use crate::sql::sql;
use crate::startup;

/// Whether a store may be in the data directory already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// No: refuse rather than lose it.
    Empty,
    /// Yes: the backup replaces it.
    Replace,
}

/// What a restored store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// Tenants, each with a new epoch.
    pub tenants: u64,
    /// Retained events of all of them.
    pub events: u64,
}

/// Makes the store in `data_dir` what the file `backup` holds.
///
/// The backup is verified whole first: schema, the engine's check, every row's checksum. Until the very last step, which is one rename, the
/// directory's present store stays as it is.
///
/// # Errors
/// [`OpenError::InUse`](crate::OpenError::InUse) when a process has the store open, [`UpkeepError::Exists`] when there is one and `target` is
/// [`Target::Empty`], [`UpkeepError::Missing`], [`UpkeepError::Damaged`], or what the system says.
pub fn restore(
    backup: &Path,
    data_dir: &Path,
    target: Target,
    clock: &dyn Clock,
    ids: &dyn IdGenerator,
) -> Result<RestoreReport, UpkeepError> {
    if !backup.try_exists().map_err(at(backup))? {
        return Err(UpkeepError::Missing { path: backup.to_path_buf() });
    }
    let directory = Directory::claim(data_dir)?;
    let present = directory.database();
    if target == Target::Empty && directory.has_database().map_err(at(&present))? {
        return Err(UpkeepError::Exists { path: present });
    }
    let unfinished = directory.unfinished();
    remove_database(&unfinished).map_err(at(&unfinished))?;
    let report = prepare(backup, &unfinished, clock.now(), ids).and_then(|report| {
        directory.discard_side_files().map_err(at(&present))?;
        directory.adopt(&unfinished).map_err(at(&present))?;
        Ok(report)
    });
    if report.is_err() {
        // The reason that is told is the first one.
        let _ = remove_database(&unfinished);
    }
    report
}

/// Copies the backup to `path`, verifies the copy, and makes it a history of its own.
fn prepare(backup: &Path, path: &Path, now: Timestamp, ids: &dyn IdGenerator) -> Result<RestoreReport, UpkeepError> {
    let options = StoreOptions::default();
    copy(backup, path, &options)?;
    let mut connection = startup::connect(path, &options)?;
    migrations::migrate(&mut connection, path, now)?;
    verify(&connection, backup)?;
    begin_history(&mut connection, now, ids)?;
    let held = contents(&connection)?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(RestoreReport { tenants: held.tenants, events: held.events })
}

fn copy(backup: &Path, path: &Path, options: &StoreOptions) -> Result<(), UpkeepError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(backup, flags)?;
    startup::identify(&source, backup)?;
    create_private_file(path).map_err(at(path))?;
    let mut target = connection::create(path, options)?;
    // The copy brings its own journal mode; until it is done it needs none.
    target.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
    Backup::new(&source, &mut target)?.step(-1)?;
    target.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn verify(connection: &Connection, backup: &Path) -> Result<(), UpkeepError> {
    let report = check(connection, Depth::Log)?;
    let damaged = report.damaged.first().map(|damage| format!("event {}: {}", damage.seq, damage.reason));
    match report.engine.first().cloned().or(damaged) {
        Some(reason) => Err(UpkeepError::Damaged { path: backup.to_path_buf(), reason }),
        None => Ok(()),
    }
}

/// New epochs, and consumers that nobody holds and that stand at or below the head.
///
/// Items and the heads of inboxes were copied with the log that their numbers belong to, so none lies above its head. But generations count on
/// from the backup: with the old keys a lease that was given after it and one that is given now could have the same token. New keys are
/// made, and what claims were answered with is forgotten with the old ones. Leases that the backup holds stay: items keep their tokens' hashes.
///
/// The dispatcher's positions keep the past epoch: by that it knows that it does not know what came after the backup, and rings for what waits.
fn begin_history(connection: &mut Connection, now: Timestamp, ids: &dyn IdGenerator) -> Result<(), UpkeepError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let numbers: Vec<i64> = {
        let mut statement = transaction.prepare(sql!("sync/all_heads"))?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    for number in numbers {
        transaction.execute(sql!("sync/new_epoch"), params![number, ids.uuid().into_bytes()])?;
    }
    transaction.execute(sql!("union/release_consumers"), [now.as_micros()])?;
    transaction.execute(sql!("union/hold_hooks"), [])?;
    transaction.execute(sql!("inbox/forget_lease_keys"), [])?;
    transaction.execute(sql!("inbox/forget_claims"), [])?;
    transaction.execute(sql!("inbox/end_sessions"), [])?;
    transaction.commit()?;
    Ok(())
}
