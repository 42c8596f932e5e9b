//! The shared store: every store port on PostgreSQL, for any number of processes.
//!
//! Requests never compete for a head row: an appender per tenant batches them. Every statement is a file under `queries/`.
//!
//! Architecture invariant: knows no rule of any module beyond what a port's documentation says, and nothing of the wire. No error of the driver
//! leaves this crate. No statement asks the database what time it is; every instant comes from the store's clock.

mod clock;
mod codec;
mod connection;
mod cursors;
mod db;
mod doubt;
mod exchange;
mod failure;
mod hints;
mod history;
mod hooks;
mod identity;
mod inbox;
mod log;
mod metrics;
mod migrations;
mod nodes;
mod options;
mod pool;
mod schedule;
pub mod schema;
mod session;
mod sql;
mod staged;
mod store;
mod tx;

pub use clock::DatabaseClock;
pub use failure::OpenError;
pub use hints::HintOptions;
pub use history::new_epoch;
pub use metrics::{MetricsSnapshot, StoreMetrics};
pub use options::PostgresOptions;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use sql::executed_statements;
pub use store::PostgresStore;
