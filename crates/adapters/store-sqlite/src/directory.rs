//! The data directory: who may use it, and which files it has.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::failure::OpenError;

/// The database file's name in the data directory.
pub const DATABASE_FILE: &str = "doorstep.sqlite";
const LOCK_FILE: &str = "doorstep.lock";
const SIDE_FILES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// A data directory that no other process uses while this value lives.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// The advisory lock goes with the handle, also when the process is killed.
    _lock: File,
}

impl Directory {
    /// Makes the directory if it is absent and locks it.
    pub(crate) fn claim(path: &Path) -> Result<Self, OpenError> {
        let unusable = |at: &Path| {
            let path = at.to_path_buf();
            move |error: std::io::Error| OpenError::Directory { path, reason: error.to_string() }
        };
        create(path).map_err(unusable(path))?;
        std::fs::read_dir(path).map_err(unusable(path))?;
        let lock_path = path.join(LOCK_FILE);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&lock_path);
        let mut lock = options.map_err(unusable(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path: path.to_path_buf(), holder: holder(&mut lock) }),
            Err(TryLockError::Error(error)) => return Err(unusable(&lock_path)(error)),
        }
        // Who holds the lock is only told to people: a full disk must not keep the store from opening.
        let _ = note_holder(&mut lock);
        Ok(Self { path: path.to_path_buf(), _lock: lock })
    }

    /// The database file.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE_FILE)
    }

    /// A file beside the database that only exists while something is being made.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.path.join(format!("{DATABASE_FILE}.new"))
    }

    /// Whether there is a store.
    pub(crate) fn has_database(&self) -> std::io::Result<bool> {
        Ok(self.database().try_exists()? || write_ahead_log(&self.database()).try_exists()?)
    }

    /// Frees the present database of its side files, so that the engine never applies them to another database under the same name.
    ///
    /// What they hold is moved into the database first; when that is impossible the database is damaged anyway.
    pub(crate) fn discard_side_files(&self) -> std::io::Result<()> {
        let database = self.database();
        if database.try_exists()?
            && let Ok(connection) = rusqlite::Connection::open(&database)
        {
            let _ = connection.pragma_update_and_check(None, "wal_checkpoint", "truncate", |_| Ok(()));
        }
        remove_side_files(&database)
    }

    /// Puts a finished database file in the place of the present one, durably.
    pub(crate) fn adopt(&self, finished: &Path) -> std::io::Result<()> {
        File::open(finished)?.sync_all()?;
        std::fs::rename(finished, self.database())?;
        sync_directory(&self.path)
    }
}

/// Makes what was renamed into or removed from `directory` durable.
pub(crate) fn sync_directory(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Removes a database with the files that the engine keeps beside it. What is not there is no error.
pub(crate) fn remove_database(path: &Path) -> std::io::Result<()> {
    remove_side_files(path)?;
    remove_file(path)
}

fn remove_side_files(path: &Path) -> std::io::Result<()> {
    SIDE_FILES.iter().try_for_each(|suffix| remove_file(&side_file(path, suffix)))
}

fn remove_file(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The write-ahead log of the database at `path`.
pub(crate) fn write_ahead_log(path: &Path) -> PathBuf {
    side_file(path, "-wal")
}

fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes a new, empty file that only its owner may read, as the engine makes what it keeps beside it.
pub(crate) fn create_private_file(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ())
}

/// Readable by its owner only: the store holds everybody's events.
fn create(path: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

fn note_holder(lock: &mut File) -> std::io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    lock.write_all(std::process::id().to_string().as_bytes())
}

fn holder(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
