//! Commands on a store that no server has open.

mod backup;
mod check;
mod keys;
mod migrate;
mod recover;
mod restore;
mod schema;

pub(crate) use backup::{BackupArguments, backup};
pub(crate) use check::{CheckArguments, check};
pub(crate) use keys::{KeysCommand, keys};
pub(crate) use migrate::{MigrateArguments, migrate};
pub(crate) use recover::{RecoverArguments, recover_owner};
pub(crate) use restore::{RestoreArguments, restore};
pub(crate) use schema::{SchemaCommand, schema};

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use domain::SystemClock;
use store_sqlite::{DATABASE_FILE, OpenError, SqliteStore};

use crate::command::{ConfigSource, USAGE, complain};
use crate::config::{self, Config};
use crate::store::Store;

/// The configuration, or the exit code of a wrong one.
fn configured(source: &ConfigSource) -> Result<Config, ExitCode> {
    config::load(&source.sources()).map_err(|error| {
        complain(&error.to_string());
        ExitCode::from(USAGE)
    })
}

/// The same for a command that only the embedded store has.
fn configured_embedded(source: &ConfigSource) -> Result<Config, ExitCode> {
    let config = configured(source)?;
    if config.database.url.0.is_some() {
        complain("this command is for the embedded store, and database.url names a PostgreSQL database: use the database's own tools");
        return Err(ExitCode::from(USAGE));
    }
    Ok(config)
}

/// Whether a store is in `directory`. None is made by asking.
fn has_store(directory: &Path) -> bool {
    directory.join(DATABASE_FILE).exists()
}

/// That no store is in the configured data directory.
fn missing(directory: &Path) -> OpenError {
    OpenError::Directory { path: PathBuf::from(directory), reason: "there is no store in it".to_owned() }
}

/// Opens the configured store, of whichever engine. None is made by asking.
async fn existing(config: &Config) -> Result<Store, String> {
    if config.database.url.0.is_none() && !has_store(&config.data.dir) {
        return Err(missing(&config.data.dir).to_string());
    }
    Store::open(config, "offline").await
}

/// Opens the embedded store that is in the configured data directory.
fn open(config: &Config) -> Result<Arc<SqliteStore>, OpenError> {
    let directory = &config.data.dir;
    if !has_store(directory) {
        return Err(missing(directory));
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
