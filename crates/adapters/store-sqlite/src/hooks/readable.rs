//! Rows that cannot be read: left out, counted and logged once, so that they never hide their neighbours.

use domain::StoreError;
use rusqlite::types::ValueRef;
use rusqlite::{Row, Rows};

use crate::failure::Failure;
use crate::metrics::StoreMetrics;

/// The tables of hooks. The first columns of each statement that reads one are its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Hooks,
    Keys,
    Deliveries,
    Attempts,
    Positions,
    ServerKeys,
}

impl Table {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::Keys => "hook_keys",
            Self::Deliveries => "hook_deliveries",
            Self::Attempts => "hook_attempts",
            Self::Positions => "hook_positions",
            Self::ServerKeys => "hook_server_keys",
        }
    }

    const fn key_columns(self) -> usize {
        match self {
            Self::Hooks | Self::Positions | Self::ServerKeys => 1,
            Self::Keys | Self::Deliveries | Self::Attempts => 2,
        }
    }

    fn key(self, row: &Row<'_>) -> Result<Vec<u8>, Failure> {
        let mut key = Vec::new();
        for column in 0..self.key_columns() {
            match row.get_ref(column)? {
                ValueRef::Integer(number) => key.extend_from_slice(&number.to_be_bytes()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => key.extend_from_slice(bytes),
                ValueRef::Null | ValueRef::Real(_) => {}
            }
        }
        Ok(key)
    }
}

/// What `read` made of a row, unless the row cannot be read.
fn readable<T>(row: &Row<'_>, read: Result<T, Failure>, table: Table, metrics: &StoreMetrics) -> Result<Option<T>, Failure> {
    match read {
        Err(Failure::Store(StoreError::Corrupt(reason))) => {
            metrics.unreadable_row(table.name(), table.key(row)?, &reason);
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// The first `limit` values that `read` makes of rows, and that are wanted (`Some`).
pub(super) fn some<T>(
    mut rows: Rows<'_>,
    table: Table,
    metrics: &StoreMetrics,
    limit: usize,
    mut read: impl FnMut(&Row<'_>) -> Result<Option<T>, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut values = Vec::new();
    while values.len() < limit {
        let Some(row) = rows.next()? else { break };
        values.extend(readable(row, read(row), table, metrics)?.flatten());
    }
    Ok(values)
}

/// All rows that can be read.
pub(super) fn all<T>(
    rows: Rows<'_>,
    table: Table,
    metrics: &StoreMetrics,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    some(rows, table, metrics, usize::MAX, |row| read(row).map(Some))
}

/// The only row, if there is one and it can be read.
pub(super) fn one<T>(
    rows: Rows<'_>,
    table: Table,
    metrics: &StoreMetrics,
    read: impl FnMut(&Row<'_>) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    Ok(all(rows, table, metrics, read)?.pop())
}
