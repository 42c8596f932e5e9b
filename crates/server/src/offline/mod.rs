//! Commands on a store that no server has open.

mod backup;
mod check;
mod recover;
mod restore;

pub(crate) use backup::{BackupArguments, backup};
pub(crate) use check::{CheckArguments, check};
pub(crate) use recover::{RecoverArguments, recover_owner};
pub(crate) use restore::{RestoreArguments, restore};

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use domain::SystemClock;
use store_sqlite::{DATABASE_FILE, OpenError, SqliteStore};

use crate::command::{ConfigSource, USAGE, complain};
use crate::config::{self, Config};

/// The configuration, or the exit code of a wrong one.
fn configured(source: &ConfigSource) -> Result<Config, ExitCode> {
    config::load(&source.sources()).map_err(|error| {
        complain(&error.to_string());
        ExitCode::from(USAGE)
    })
}

/// Whether a store is in `directory`. None is made by asking.
fn has_store(directory: &Path) -> bool {
    directory.join(DATABASE_FILE).exists()
}

/// Opens the store that is in the configured data directory.
fn open(config: &Config) -> Result<Arc<SqliteStore>, OpenError> {
    let directory = &config.data.dir;
    if !has_store(directory) {
        return Err(OpenError::Directory { path: PathBuf::from(directory), reason: "there is no store in it".to_owned() });
    }
    SqliteStore::open(directory, config.store(), Arc::new(SystemClock::new()))
}

/// Says what went wrong.
fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    complain(&error.to_string());
    ExitCode::FAILURE
}

/// A number of things, for people.
fn counted(count: impl Into<u64>, thing: &str) -> String {
    match count.into() {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}
