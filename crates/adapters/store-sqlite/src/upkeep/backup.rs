//! An online backup: one snapshot, copied page by page beside the running writer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use super::{UpkeepError, at};
use crate::StoreOptions;
use crate::checkpoint::LongSnapshot;
use crate::codec;
use crate::connection;
use crate::directory::{create_private_file, remove_database, sync_directory};
use crate::queue::Queue;
use crate::sql::sql;
use crate::store::SqliteStore;
use crate::writer::Job;

/// Pages that are copied between two looks at whether the store closes, and made durable together: bounds how much the medium has to take at
/// once, and with it how long a commit beside it waits.
const STEP_PAGES: i32 = 512;

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Tenants.
    pub tenants: u64,
    /// Retained events of all of them.
    pub events: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl SqliteStore {
    /// Writes a consistent copy of the store as it is now to the new file `to`, while the store goes on working.
    ///
    /// The file is complete and durable under its name, or not there. It is one file, with nothing beside it. While the copy runs, the
    /// write-ahead log cannot be shortened: it grows by what is written meanwhile.
    ///
    /// # Errors
    /// [`UpkeepError::Exists`] when `to` is there; otherwise what the system or the store says.
    pub async fn backup(&self, to: &Path) -> Result<BackupReport, UpkeepError> {
        let (sender, receiver) = oneshot::channel();
        let job = Copying {
            database: self.path().to_path_buf(),
            to: to.to_path_buf(),
            options: self.options().clone(),
            writes: self.write_queue(),
            _snapshot: self.long_snapshot(),
        };
        self.start("store-backup", move || _ = sender.send(job.run()))?;
        receiver.await.unwrap_or(Err(UpkeepError::Store(domain::StoreError::Unavailable)))
    }
}

struct Copying {
    database: PathBuf,
    to: PathBuf,
    options: StoreOptions,
    writes: Arc<Queue<Job>>,
    _snapshot: LongSnapshot,
}

impl Copying {
    fn run(&self) -> Result<BackupReport, UpkeepError> {
        self.refuse_overwriting()?;
        let partial = partial(&self.to);
        remove_database(&partial).map_err(at(&partial))?;
        let report = self.copy(&partial).and_then(|report| self.finish(&partial, report));
        if report.is_err() {
            // The reason that is told is the first one.
            let _ = remove_database(&partial);
        }
        report
    }

    fn refuse_overwriting(&self) -> Result<(), UpkeepError> {
        if self.to.try_exists().map_err(at(&self.to))? { Err(UpkeepError::Exists { path: self.to.clone() }) } else { Ok(()) }
    }

    fn copy(&self, partial: &Path) -> Result<BackupReport, UpkeepError> {
        let source = connection::reader(&self.database, &self.options)?;
        // An open snapshot: without it the copy would begin anew with every commit.
        source.prepare_cached("BEGIN")?.execute([])?;
        let report = contents(&source)?;
        let mut target = create_private(partial)?;
        let written = File::open(partial).map_err(at(partial))?;
        {
            let copy = Backup::new(&source, &mut target)?;
            while copy.step(STEP_PAGES)? != StepResult::Done {
                if self.writes.is_closed() {
                    return Err(UpkeepError::Store(domain::StoreError::Unavailable));
                }
                written.sync_data().map_err(at(partial))?;
            }
        }
        // The copy is one file that needs nothing beside it.
        target.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
        target.close().map_err(|(_, error)| error)?;
        Ok(report)
    }

    fn finish(&self, partial: &Path, report: BackupReport) -> Result<BackupReport, UpkeepError> {
        let file = File::open(partial).map_err(at(partial))?;
        file.sync_all().map_err(at(partial))?;
        let bytes = file.metadata().map_err(at(partial))?.len();
        self.refuse_overwriting()?;
        std::fs::rename(partial, &self.to).map_err(at(&self.to))?;
        let parent = self.to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sync_directory(parent).map_err(at(parent))?;
        Ok(BackupReport { bytes, ..report })
    }
}

fn partial(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// A new database file that only its owner may read. Its durability is ours: it is made durable before it gets its name.
fn create_private(path: &Path) -> Result<Connection, UpkeepError> {
    create_private_file(path).map_err(at(path))?;
    let target = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    target.pragma_update(None, "synchronous", "off")?;
    Ok(target)
}

/// What the snapshot of `source` holds.
pub(crate) fn contents(source: &Connection) -> Result<BackupReport, UpkeepError> {
    let mut statement = source.prepare_cached(sql!("sync/all_heads"))?;
    let mut rows = statement.query([])?;
    let mut report = BackupReport { tenants: 0, events: 0, bytes: 0 };
    while let Some(row) = rows.next()? {
        let (head, floor) = (codec::seq(row, 2)?, codec::seq(row, 3)?);
        report.tenants += 1;
        report.events += head.next().since(floor);
    }
    Ok(report)
}
