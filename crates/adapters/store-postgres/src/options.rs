//! What can be set about the store.

use std::fmt;
use std::time::Duration;

/// The settings of the shared store, keys `database.*`.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `database.url`: `postgres://user:password@host:port/name?sslmode=…`. Never logged.
    pub url: String,
    /// Names this node in the server's list of sessions.
    pub node: String,
    /// `database.connections`: connections for everything but appends, at least 2.
    pub connections: usize,
    /// `database.append_connections`: connections that only append, at least 1. As many tenants are appended to at the same time.
    pub append_connections: usize,
    /// `database.acquire_timeout`: how long a request waits for a connection, also while the server restarts.
    pub acquire_timeout: Duration,
    /// `database.statement_timeout`: the longest that one statement may take.
    pub statement_timeout: Duration,
    /// `database.lock_timeout`: the longest that a statement waits for a lock.
    pub lock_timeout: Duration,
    /// `database.queue_max`: appends of one tenant that may wait; one more is refused as overloaded.
    pub queue_max: usize,
    /// `database.queue_max_bytes`: bytes of publications of one tenant that may wait.
    pub queue_max_bytes: usize,
    /// `database.batch_max`: publications that share one commit.
    pub batch_max: usize,
    /// `database.batch_max_bytes`: bytes of publications that share one commit.
    pub batch_max_bytes: usize,
    /// `database.auto_migrate`: bring an older schema up to date when the store is opened.
    pub auto_migrate: bool,
}

impl PostgresOptions {
    /// Defaults on a database.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            node: "node".to_owned(),
            connections: 16,
            append_connections: 4,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(5),
            queue_max: 10_000,
            queue_max_bytes: 64 << 20,
            batch_max: 500,
            batch_max_bytes: 8 << 20,
            auto_migrate: false,
        }
    }
}

impl PostgresOptions {
    /// How long an answer is waited for. The server bounds its statements, but a connection that has gone silent tells nobody.
    pub(crate) fn patience(&self) -> Duration {
        self.statement_timeout.saturating_mul(2)
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions").field("node", &self.node).field("connections", &self.connections).finish_non_exhaustive()
    }
}
