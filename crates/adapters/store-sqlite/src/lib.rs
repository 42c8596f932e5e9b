//! The embedded store: every store port on SQLite.
//!
//! One writer thread commits units of work in batches, a few reader threads answer from snapshots. Every statement is a file under `queries/`.
//!
//! Architecture invariant: knows no rule of any module beyond what a port's documentation says, and nothing of the wire. No error of the driver
//! leaves this crate.

mod checkpoint;
mod codec;
mod connection;
mod cursors;
mod directory;
mod failure;
mod hooks;
mod identity;
mod inbox;
mod log;
mod metrics;
mod migrations;
mod options;
mod queue;
mod readers;
mod schedule;
mod sql;
mod startup;
mod store;
mod tx;
mod upkeep;
mod wal;
mod writer;

pub use directory::DATABASE_FILE;
pub use failure::OpenError;
pub use metrics::{MetricsSnapshot, StoreMetrics};
pub use options::StoreOptions;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use sql::executed_statements;
pub use store::SqliteStore;
pub use upkeep::{BackupReport, CheckReport, Damage, RestoreReport, Target, UpkeepError, restore};
