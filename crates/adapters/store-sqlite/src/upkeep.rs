//! What an operator does with a store: back it up, restore it, check it, move it elsewhere.

mod backup;
mod check;
mod check_hooks;
mod check_items;
mod export;
mod restore;

use std::path::PathBuf;

use domain::StoreError;
use thiserror::Error;

use crate::failure::{Failure, OpenError};

pub use backup::BackupReport;
pub use check::{CheckReport, Damage};
pub use restore::{RestoreReport, Target, restore};

/// Why a backup, a restore or a check was not done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UpkeepError {
    /// What was to be written is there already; nothing of it was touched.
    #[error("{path} exists already")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file to read is not there.
    #[error("there is no backup at {path}")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The backup contradicts itself; the data directory was not touched.
    #[error("the backup {path} is damaged: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first contradiction.
        reason: String,
    },
    /// A file cannot be written or read.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The store or the backup cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Failure> for UpkeepError {
    fn from(failure: Failure) -> Self {
        Self::Store(failure.into())
    }
}

impl From<rusqlite::Error> for UpkeepError {
    fn from(error: rusqlite::Error) -> Self {
        Failure::from(error).into()
    }
}

/// What the system says about a file.
fn at(path: &std::path::Path) -> impl Fn(std::io::Error) -> UpkeepError {
    let path = path.to_path_buf();
    move |error| UpkeepError::File { path: path.clone(), reason: error.to_string() }
}
