//! What a store needs for everything in it to leave, or to arrive.

use async_trait::async_trait;
use domain::StoreError;

use crate::{Row, Table};

/// How much to read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// At most so many rows.
    pub rows: usize,
    /// No more rows once there are so many bytes.
    pub bytes: usize,
}

/// Some rows of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpPage {
    /// The rows, in the store's own order. None when the table ends here.
    pub rows: Vec<Row>,
    /// Where to continue; absent without rows.
    pub end: Option<String>,
}

/// Reading everything that a store holds.
#[async_trait]
pub trait Dump: Send + Sync {
    /// The rows of `table` behind the position `after`, from the first one without it, in an order of the store's own in which every row comes once.
    /// At least one row while there are any. What is damaged is [`StoreError::Corrupt`], never left out.
    async fn rows(&self, table: Table, after: Option<&str>, bound: Bound) -> Result<DumpPage, StoreError>;
}

/// What a store says to a transfer that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It was empty, and is this source's from now on.
    Empty,
    /// An earlier transfer from the same source came part of the way; it can go on.
    Resumed,
    /// Everything of the same source is in it, and was verified.
    Finished,
    /// It holds something else: nothing was touched.
    Foreign,
}

/// Filling an empty store. Until it is finished nobody else opens it for service.
#[async_trait]
pub trait Load: Dump {
    /// Whether everything of `source` can go into this store. `source` names it and the state of its logs.
    async fn begin(&self, source: &str) -> Result<Started, StoreError>;
    /// How far `table` has come: the source's position behind the last row that is in it.
    async fn loaded(&self, table: Table) -> Result<Option<String>, StoreError>;
    /// Adds rows to `table` and notes that the source goes on at `end`, both or nothing. [`StoreError::Conflict`] when it has not come exactly to `from`:
    /// then somebody else fills it too.
    async fn load(&self, table: Table, from: Option<&str>, rows: &[Row], end: &str) -> Result<(), StoreError>;
    /// Everything is in it and was verified: it numbers on where the source stopped, and can be served.
    async fn finish(&self, source: &str) -> Result<(), StoreError>;
}
