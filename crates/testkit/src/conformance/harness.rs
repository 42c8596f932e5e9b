//! What the suite knows of a store: every port, and a few ways around them that only tests have.

use std::sync::Arc;

use agents::CursorStore;
use async_trait::async_trait;
use authz::{AdminTx, IdentityStore};
use domain::{Clock, Transactions};
use hooks::{HookStore, HookTx};
use inbox::{InboxStore, InboxTx};
use intake::{PublishTx, ScheduleStore};
use sync::{Append, CommitListener, LogStore};
use uuid::Uuid;

/// Every port of one store.
pub trait Ports:
    LogStore
    + Append
    + IdentityStore
    + CursorStore
    + ScheduleStore
    + InboxStore
    + HookStore
    + Transactions<dyn AdminTx>
    + Transactions<dyn PublishTx>
    + Transactions<dyn InboxTx>
    + Transactions<dyn HookTx>
    + 'static
{
}

impl<T> Ports for T where
    T: LogStore
        + Append
        + IdentityStore
        + CursorStore
        + ScheduleStore
        + InboxStore
        + HookStore
        + Transactions<dyn AdminTx>
        + Transactions<dyn PublishTx>
        + Transactions<dyn InboxTx>
        + Transactions<dyn HookTx>
        + 'static
{
}

impl std::fmt::Debug for dyn Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a store")
    }
}

/// A kind of store.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Makes an empty store in a place of its own (a directory, a database), which goes when the answer is dropped. What the store does is decided
    /// by this clock alone.
    async fn open(&self, clock: Arc<dyn Clock>) -> Box<dyn Subject>;

    /// How many random cases a property tries. A store behind a socket may ask for fewer than `usual`.
    fn cases(&self, usual: u32) -> u32 {
        usual
    }
}

/// An open store.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Its ports.
    fn ports(&self) -> Arc<dyn Ports>;
    /// Has `listener` told of every commit that appends.
    fn listen(&self, listener: Arc<dyn CommitListener>);
    /// Closes the store and opens it again in the same place, with the same clock.
    async fn reopen(self: Box<Self>) -> Box<dyn Subject>;
    /// How many rows a table of the register has; with ` WHERE ..` behind its name, how many of them.
    async fn count(&self, rows: &str) -> i64;
    /// How many rows of all logs are there and not given up to retention yet.
    async fn log_rows(&self) -> i64;
    /// Changes rows beside the store; answers how many. The statement is one that every engine understands.
    async fn execute(&self, statement: &str) -> u64;
    /// The column of `event_log` that holds an event's place, and an expression that is its `seq` in the log of a store with one tenant.
    fn log_column(&self) -> (&'static str, &'static str);
    /// An id, as a literal in a statement.
    fn literal(&self, id: Uuid) -> String;
}
