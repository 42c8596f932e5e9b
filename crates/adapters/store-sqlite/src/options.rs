//! What can be set about the store.

use std::time::Duration;

/// The settings of the embedded store, keys `database.*`. The defaults serve a laptop and a small server.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// `database.readers`: threads that read, at least 1.
    pub readers: usize,
    /// `database.queue_max`: writes that may wait; one more is refused as overloaded. Reads have a queue of the same length.
    pub queue_max: usize,
    /// `database.queue_max_bytes`: bytes of publications that may wait. A larger one is still taken when nothing else waits.
    pub queue_max_bytes: usize,
    /// `database.batch_max`: units of work that share one commit.
    pub batch_max: usize,
    /// `database.batch_max_bytes`: bytes of publications that share one commit.
    pub batch_max_bytes: usize,
    /// `database.busy_timeout`: how long to wait for another program's lock on the database file.
    pub busy_timeout: Duration,
    /// `database.wal_checkpoint_bytes`: about how large the write-ahead log grows before it is moved into the database.
    pub wal_checkpoint_bytes: u64,
    /// `database.max_bytes`: how large the database file may become; beyond it the store is full. As large as the medium allows when absent.
    pub max_bytes: Option<u64>,
    /// `database.cache_bytes`: the page cache of the writer; each reader has a quarter of it.
    pub cache_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            readers: 2,
            queue_max: 10_000,
            queue_max_bytes: 64 << 20,
            batch_max: 500,
            batch_max_bytes: 8 << 20,
            busy_timeout: Duration::from_secs(5),
            wal_checkpoint_bytes: 16 << 20,
            max_bytes: None,
            cache_bytes: 16 << 20,
        }
    }
}
