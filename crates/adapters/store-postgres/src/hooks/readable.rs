//! Rows that cannot be read: left out, counted and logged once, so that they never hide their neighbours.

use domain::StoreError;

use crate::codec;
use crate::db::PgRow;
use crate::failure::Failure;
use crate::metrics::StoreMetrics;

/// The tables of hooks. The first columns of each statement that reads one are its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Hooks,
    Keys,
    Deliveries,
    Attempts,
    Positions,
    ServerKeys,
}

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::Keys => "hook_keys",
            Self::Deliveries => "hook_deliveries",
            Self::Attempts => "hook_attempts",
            Self::Positions => "hook_positions",
            Self::ServerKeys => "hook_server_keys",
        }
    }

    /// The key of a row as bytes that tell it apart.
    fn key(self, row: &PgRow) -> Vec<u8> {
        let uuid = |column| codec::uuid(row, column).map(|id| id.into_bytes().to_vec());
        let text = |column| codec::get::<&str>(row, column).map(|text| text.as_bytes().to_vec());
        let number = |column| codec::get::<i64>(row, column).map(|number| number.to_be_bytes().to_vec());
        let parts = match self {
            Self::Hooks => [uuid(0), Ok(Vec::new())],
            Self::Keys | Self::Deliveries => [uuid(0), text(1)],
            Self::Attempts => [uuid(0), number(1)],
            Self::Positions | Self::ServerKeys => [text(0), Ok(Vec::new())],
        };
        parts.into_iter().flatten().flatten().collect()
    }
}

/// What `read` made of a row, unless the row cannot be read.
pub(super) fn readable<T>(row: &PgRow, read: Result<T, Failure>, table: Table, metrics: &StoreMetrics) -> Result<Option<T>, Failure> {
    match read {
        Err(Failure::Store(StoreError::Corrupt(reason))) => {
            metrics.unreadable_row(table.name(), table.key(row), &reason);
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// All rows that can be read.
pub(super) fn all<T>(
    rows: &[PgRow],
    table: Table,
    metrics: &StoreMetrics,
    mut read: impl FnMut(&PgRow) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut values = Vec::with_capacity(rows.len());
    for row in rows {
        values.extend(readable(row, read(row), table, metrics)?);
    }
    Ok(values)
}

/// How many rows to ask for when `limit` readable ones are wanted: so many, and, when some of them cannot be read, all.
pub(super) const fn bounds(limit: usize) -> [usize; 2] {
    [limit, usize::MAX]
}

/// Whether there is nothing more to find: enough was read, or every row was seen.
pub(super) const fn is_enough(read: usize, rows: usize, bound: usize, limit: usize) -> bool {
    read >= limit || rows < bound
}
