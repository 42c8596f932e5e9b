//! The ports to the stored log.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{Appended, Event, Publication, Seq, StoreError, SyncEpoch, TenantId, Timestamp};

/// The head row of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The highest committed position.
    pub seq: Seq,
    /// The lowest retained position; `seq + 1` when nothing is retained.
    pub floor: Seq,
    /// The identity of the log's history.
    pub epoch: SyncEpoch,
}

/// Which rows to read.
#[derive(Clone, Copy, Debug)]
pub struct PageRange {
    /// Rows strictly above this position.
    pub after: Seq,
    /// Rows up to and with this position; up to the head when absent.
    pub up_to: Option<Seq>,
    /// At most this many rows, at least 1.
    pub max_events: usize,
    /// At most this many bytes ([`Event::size`]); a first row larger than that is still read, alone.
    pub max_bytes: usize,
}

/// Rows of a log with the head row of the same snapshot.
#[derive(Clone, Debug)]
pub struct Page {
    /// The rows in order, without gaps: the first is `after + 1` unless that lies below `head.floor`.
    pub events: Vec<Arc<Event>>,
    /// The head row in the snapshot that the rows were read in.
    pub head: Head,
}

impl Page {
    /// Whether rows between `after` and this page were removed by retention: the reader has missed something.
    pub fn is_below_floor(&self, after: Seq) -> bool {
        after.next() < self.head.floor
    }
}

/// What one step of retention did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retired {
    /// The floor after the step.
    pub floor: Seq,
    /// Rows removed in the step.
    pub removed: u64,
    /// Whether another step would find more.
    pub more: bool,
}

/// Reading the log, and its upkeep.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// The head row; `None` for a tenant that is not there.
    async fn head(&self, tenant: &TenantId) -> Result<Option<Head>, StoreError>;
    /// The head rows of these tenants with one query; those that are not there are left out.
    async fn heads(&self, tenants: &[TenantId]) -> Result<Vec<(TenantId, Head)>, StoreError>;
    /// Rows of the range and the head row, in one snapshot. Every row's checksum is verified: a damaged, missing or misplaced row is
    /// [`StoreError::Corrupt`], never a shorter page. [`StoreError::TenantInactive`] for a tenant that is not there.
    async fn page(&self, tenant: &TenantId, range: PageRange) -> Result<Page, StoreError>;
    /// Raises the floor past rows accepted before `older_than`, at most `limit` of them. The rows themselves are removed by [`LogStore::sweep`].
    async fn raise_floor(&self, tenant: &TenantId, older_than: Timestamp, limit: usize) -> Result<Retired, StoreError>;
    /// Removes rows that have lain below the floor since before `raised_before`, at most `limit` of them.
    async fn sweep(&self, tenant: &TenantId, raised_before: Timestamp, limit: usize) -> Result<Retired, StoreError>;
    /// Removes deduplication keys that expired before `now`, at most `limit`; answers how many.
    async fn expire_keys(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

/// Writing the log, as part of a transaction.
#[async_trait]
pub trait LogWrite: Send {
    /// Appends in order, each with the next `seq` of the tenant's head row, and takes the deduplication keys, all in this transaction.
    ///
    /// Answers one [`Appended`] per publication, in order. A known key makes a [`Appended::Duplicate`]; a key known for another body makes a
    /// [`Appended::Conflict`], and the caller must abort. The same key twice in one batch: the second is a duplicate of the first.
    /// A tenant that is not active is [`StoreError::TenantInactive`].
    async fn append(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, StoreError>;
    /// The head of the log as this transaction sees it.
    async fn log_head(&mut self, tenant: &TenantId) -> Result<Head, StoreError>;
}

/// A publish request for [`Append::append`]: atomic as a whole.
#[derive(Clone, Debug)]
pub struct AppendAnswer {
    /// What became of each publication, in order.
    pub appended: Vec<Appended>,
    /// The head after the request's commit, at least its highest `seq`.
    pub head: Seq,
}

/// The hot path of publishing: many requests share one durable commit, each is atomic by itself.
#[async_trait]
pub trait Append: Send + Sync {
    /// Appends `publications` as one atomic request and answers after the durable commit. When any of them is a
    /// [`Appended::Conflict`], nothing of the request is kept and the answers say which.
    ///
    /// # Errors
    /// [`StoreError::Overloaded`] at once when the bounded queue is full; otherwise as [`domain::Transactions::run`].
    async fn append(&self, tenant: &TenantId, publications: Vec<Publication>) -> Result<AppendAnswer, StoreError>;
}

/// Told of every commit that appended, in commit order, after it became durable and before the publishers are answered.
pub trait CommitListener: Send + Sync {
    /// `events` were committed to the log of `tenant`, consecutive and in order. Must not block.
    fn committed(&self, tenant: &TenantId, epoch: SyncEpoch, events: &[Arc<Event>]);
}
