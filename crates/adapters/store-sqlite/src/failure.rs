//! What can go wrong here, and how a driver's error becomes the ports' one.

use std::path::{Path, PathBuf};

use domain::StoreError;
use rusqlite::ffi;
use thiserror::Error;

/// Why a store could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The data directory cannot be made or used.
    #[error("the data directory {path} cannot be used: {reason}")]
    Directory {
        /// The directory, or the file in it.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// Another process has the store open.
    #[error("another doorstep process{} holds the store in {path}; stop it first, or use another data directory", owner(*.holder))]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// The other process, when it could be told.
        holder: Option<u32>,
    },
    /// The store was written by a newer release.
    #[error(
        "the store {path} has schema version {found}, and this release knows up to {known}; use the release that wrote it, or a newer one"
    )]
    NewerSchema {
        /// The database file.
        path: PathBuf,
        /// The version of the store.
        found: i64,
        /// The newest version that this release knows.
        known: i64,
    },
    /// The store's history of migrations is not this product's.
    #[error("the store {path} was migrated differently: migration {version} has another content than this release's")]
    ForeignMigration {
        /// The database file.
        path: PathBuf,
        /// The first migration that differs.
        version: i64,
    },
    /// The file is another program's database, or none at all.
    #[error("{path} is not a store of this product: {reason}")]
    NotAStore {
        /// The database file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The store contradicts itself; nothing of it is served.
    #[error("the store {path} is damaged: {reason}; restore a backup, or let `doorstep check` tell more")]
    Corrupt {
        /// The database file.
        path: PathBuf,
        /// What contradicts what.
        reason: String,
    },
    /// The medium has no room.
    #[error("no room to open the store {path}")]
    Full {
        /// The database file.
        path: PathBuf,
    },
    /// Anything else that the engine or the system refused.
    #[error("the store {path} cannot be opened: {reason}")]
    Failed {
        /// The database file.
        path: PathBuf,
        /// What was said.
        reason: String,
    },
}

impl OpenError {
    /// What the engine said while the database at `path` was opened.
    pub(crate) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let (path, reason) = (path.to_path_buf(), error.to_string());
        match error.sqlite_error_code() {
            Some(Code::NotADatabase) => Self::NotAStore { path, reason },
            Some(Code::DatabaseCorrupt) => Self::Corrupt { path, reason },
            Some(Code::DiskFull) => Self::Full { path },
            Some(Code::CannotOpen | Code::PermissionDenied | Code::ReadOnly) => Self::Directory { path, reason },
            _ => Self::Failed { path, reason },
        }
    }
}

fn owner(holder: Option<u32>) -> String {
    holder.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// An error on its way to a port: the port's own, or the driver's that is still to be mapped.
#[derive(Debug)]
pub(crate) enum Failure {
    Store(StoreError),
    Sqlite(rusqlite::Error),
}

impl Failure {
    /// Whether a foreign key was violated: what the row names is not there.
    pub(crate) fn is_foreign_key(&self) -> bool {
        self.extended_code() == Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY)
    }

    /// Whether what was to be created is there.
    pub(crate) fn is_unique(&self) -> bool {
        matches!(
            self.extended_code(),
            Some(ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_ROWID)
        )
    }

    fn extended_code(&self) -> Option<i32> {
        match self {
            Self::Sqlite(rusqlite::Error::SqliteFailure(error, _)) => Some(error.extended_code),
            _ => None,
        }
    }

    /// Stored data that cannot be read as what it should be.
    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Store(StoreError::Corrupt(what.into()))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => error,
            Failure::Sqlite(error) => map(&error),
        }
    }
}

/// The port's word for a driver's error. What it does not say goes to the log, once, here.
fn map(error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode as Code;
    let (code, extended) = match error {
        rusqlite::Error::SqliteFailure(failure, _) => (failure.code, failure.extended_code),
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..)
        | rusqlite::Error::InvalidColumnType(..) => {
            tracing::error!(error = %error, "a stored row cannot be read");
            return StoreError::Corrupt("a stored value has another type than its column".to_owned());
        }
        _ => (Code::Unknown, 0),
    };
    let mapped = match code {
        // A database that cannot grow its shared index has no room either.
        _ if extended == ffi::SQLITE_IOERR_SHMSIZE => StoreError::Full,
        Code::DiskFull => StoreError::Full,
        Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed => StoreError::Transient,
        Code::DatabaseCorrupt | Code::NotADatabase => StoreError::Corrupt("the database file is malformed".to_owned()),
        Code::ConstraintViolation => StoreError::Conflict("a stored row forbids it"),
        Code::TooBig => StoreError::Conflict("larger than the store can hold"),
        _ => StoreError::Unavailable,
    };
    match &mapped {
        StoreError::Full => tracing::error!(error = %error, "the store has no room"),
        StoreError::Corrupt(_) => tracing::error!(error = %error, "the store is corrupt"),
        StoreError::Unavailable => tracing::error!(error = %error, sqlite.code = extended, "the store failed"),
        _ => tracing::debug!(error = %error, sqlite.code = extended, "the store refused"),
    }
    mapped
}

#[cfg(test)]
mod tests {
    use domain::StoreError;
    use rusqlite::ffi;

    use super::Failure;

    fn mapped(code: i32) -> StoreError {
        Failure::Sqlite(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)).into()
    }

    #[test]
    fn the_engines_codes_become_the_ports_words() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
            assert_eq!(mapped(code), StoreError::Full, "{code}");
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED, ffi::SQLITE_BUSY_SNAPSHOT] {
            assert_eq!(mapped(code), StoreError::Transient, "{code}");
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_CORRUPT_INDEX] {
            assert!(matches!(mapped(code), StoreError::Corrupt(_)), "{code}");
        }
        for code in [ffi::SQLITE_CONSTRAINT, ffi::SQLITE_CONSTRAINT_PRIMARYKEY, ffi::SQLITE_TOOBIG] {
            assert!(matches!(mapped(code), StoreError::Conflict(_)), "{code}");
        }
        for code in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_READONLY, ffi::SQLITE_CANTOPEN, ffi::SQLITE_ERROR] {
            assert_eq!(mapped(code), StoreError::Unavailable, "{code}");
        }
    }
}
