//! The transfer itself: copy what is not there yet, then read both stores to their ends and compare.

use domain::StoreError;
use ring::digest::{Context, SHA256};
use thiserror::Error;

use crate::{Bound, Dump, Load, Started, Table, Tally, Value};

/// What a transfer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It begins anew.
    Begun,
    /// It continues where an earlier one was interrupted.
    Resumed,
    /// Rows of a table were copied, so many by this run.
    Copied(Table, u64),
    /// A table was compared.
    Compared(Table, u64),
}

/// A table that is the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Which.
    pub table: Table,
    /// Its rows.
    pub tally: Tally,
}

/// What a transfer did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every table, in the order of the copying.
    pub tables: Vec<Verified>,
}

/// Why a transfer did not end well. Nothing is lost: the source is only read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The source fails.
    #[error("the source cannot be read: {0}")]
    Source(#[source] StoreError),
    /// The target fails.
    #[error("the target cannot be written: {0}")]
    Target(#[source] StoreError),
    /// The target is in use, or filled from something else.
    #[error("the target is not empty, and what is in it is not the beginning of a transfer from this source as it is now")]
    Foreign,
    /// The target has everything already.
    #[error("everything of this source is in the target already")]
    Finished,
    /// The two sides differ at the end.
    #[error("table {table} differs: {source_rows} rows at the source, {target_rows} at the target; empty the target and begin again", table = .table.name(), source_rows = .from.rows, target_rows = .to.rows)]
    Differs {
        /// Where.
        table: Table,
        /// What the source has.
        from: Tally,
        /// What the target has.
        to: Tally,
    },
}

/// Copies everything from `source` to `target`, continuing where an earlier transfer stopped, compares the two, and makes the target fit for service.
/// `tell` hears of the progress.
///
/// The source must be at rest: what changes meanwhile is found at the end and makes the transfer fail.
///
/// # Errors
/// [`TransferError`].
pub async fn transfer(
    source: &dyn Dump,
    target: &dyn Load,
    bound: Bound,
    tell: &mut (dyn FnMut(Stage) + Send),
) -> Result<Report, TransferError> {
    let identity = identity(source, bound).await?;
    match target.begin(&identity).await.map_err(TransferError::Target)? {
        Started::Empty => tell(Stage::Begun),
        Started::Resumed => tell(Stage::Resumed),
        Started::Finished => return Err(TransferError::Finished),
        Started::Foreign => return Err(TransferError::Foreign),
    }
    for table in Table::ALL {
        copy(source, target, table, bound, tell).await?;
    }
    let mut tables = Vec::with_capacity(Table::ALL.len());
    for table in Table::ALL {
        let (from, to) = tokio::join!(tally(source, table, bound), tally(target, table, bound));
        let (from, to) = (from.map_err(TransferError::Source)?, to.map_err(TransferError::Target)?);
        if from != to {
            return Err(TransferError::Differs { table, from, to });
        }
        tell(Stage::Compared(table, from.rows));
        tables.push(Verified { table, tally: from });
    }
    target.finish(&identity).await.map_err(TransferError::Target)?;
    Ok(Report { tables })
}

async fn copy(
    source: &dyn Dump,
    target: &dyn Load,
    table: Table,
    bound: Bound,
    tell: &mut (dyn FnMut(Stage) + Send),
) -> Result<(), TransferError> {
    let mut from = target.loaded(table).await.map_err(TransferError::Target)?;
    let mut copied = 0;
    loop {
        let page = source.rows(table, from.as_deref(), bound).await.map_err(TransferError::Source)?;
        let Some(end) = page.end else { return Ok(()) };
        target.load(table, from.as_deref(), &page.rows, &end).await.map_err(TransferError::Target)?;
        copied += page.rows.len() as u64;
        tell(Stage::Copied(table, copied));
        from = Some(end);
    }
}

async fn tally(store: &(impl Dump + ?Sized), table: Table, bound: Bound) -> Result<Tally, StoreError> {
    let (mut tally, mut after) = (Tally::default(), None);
    loop {
        let page = store.rows(table, after.as_deref(), bound).await?;
        page.rows.iter().for_each(|row| tally.add(row));
        if page.end.is_none() {
            return Ok(tally);
        }
        after = page.end;
    }
}

/// Tells this source in this state from others: its logs, how far each of them goes, and in which epoch.
async fn identity(source: &dyn Dump, bound: Bound) -> Result<String, TransferError> {
    let (mut hash, mut after) = (Context::new(&SHA256), None);
    loop {
        let page = source.rows(Table::LogHeads, after.as_deref(), bound).await.map_err(TransferError::Source)?;
        for row in &page.rows {
            let mut bytes = Vec::new();
            row.iter().for_each(|value: &Value| value.write(&mut bytes));
            hash.update(&bytes);
        }
        if page.end.is_none() {
            return Ok(hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        after = page.end;
    }
}
