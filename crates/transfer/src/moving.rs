//! The transfer itself: copy what is not there yet, then read both stores to their ends and compare.

use domain::StoreError;
use ring::digest::{Context, SHA256};
use thiserror::Error;

use crate::{Bound, Dump, Load, Started, Table, Tally};

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
            for value in row {
                value.write(&mut bytes);
            }
            hash.update(&bytes);
        }
        if page.end.is_none() {
            return Ok(hash.finish().as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")));
        }
        after = page.end;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::{Mutex, MutexGuard};

    use async_trait::async_trait;
    use domain::StoreError;

    use super::{Stage, TransferError, transfer};
    use crate::{Bound, Dump, DumpPage, Kind, Load, Row, Started, Table, Value};

    const BOUND: Bound = Bound { rows: 3, bytes: usize::MAX };

    /// A store in memory. Positions are counts of rows.
    #[derive(Default)]
    struct Memory(Mutex<Inner>);

    #[derive(Default)]
    struct Inner {
        rows: HashMap<Table, Vec<Row>>,
        loaded: HashMap<Table, String>,
        state: Option<(String, bool)>,
        /// Loads until one fails.
        left: usize,
    }

    impl Memory {
        /// With `rows` rows in each table.
        fn filled(rows: i64) -> Self {
            let memory = Self::default();
            for table in Table::ALL {
                let row = |number| table.columns().iter().map(|column| value(column.kind, number)).collect();
                memory.inner().rows.insert(table, (0..rows).map(row).collect());
            }
            memory
        }

        fn inner(&self) -> MutexGuard<'_, Inner> {
            self.0.lock().unwrap()
        }
    }

    fn value(kind: Kind, number: i64) -> Value {
        match kind {
            Kind::Integer => Value::Integer(number),
            Kind::Text => Value::Text(number.to_string()),
            _ => Value::Absent,
        }
    }

    #[async_trait]
    impl Dump for Memory {
        async fn rows(&self, table: Table, after: Option<&str>, bound: Bound) -> Result<DumpPage, StoreError> {
            let from: usize = after.map_or(0, |text| text.parse().unwrap());
            let rows: Vec<Row> = self.inner().rows.get(&table).into_iter().flatten().skip(from).take(bound.rows).cloned().collect();
            let end = (!rows.is_empty()).then(|| (from + rows.len()).to_string());
            Ok(DumpPage { rows, end })
        }
    }

    #[async_trait]
    impl Load for Memory {
        async fn begin(&self, source: &str) -> Result<Started, StoreError> {
            let mut inner = self.inner();
            Ok(match &inner.state {
                None if !inner.rows.is_empty() => Started::Foreign,
                None => {
                    inner.state = Some((source.to_owned(), false));
                    Started::Empty
                }
                Some((same, true)) if same == source => Started::Finished,
                Some((same, false)) if same == source => Started::Resumed,
                Some(_) => Started::Foreign,
            })
        }

        async fn loaded(&self, table: Table) -> Result<Option<String>, StoreError> {
            Ok(self.inner().loaded.get(&table).cloned())
        }

        async fn load(&self, table: Table, from: Option<&str>, rows: &[Row], end: &str) -> Result<(), StoreError> {
            let mut inner = self.inner();
            if inner.left == 1 {
                return Err(StoreError::Unavailable);
            }
            inner.left = inner.left.saturating_sub(1);
            assert_eq!(inner.loaded.get(&table).map(String::as_str), from);
            inner.loaded.insert(table, end.to_owned());
            inner.rows.entry(table).or_default().extend_from_slice(rows);
            Ok(())
        }

        async fn finish(&self, source: &str) -> Result<(), StoreError> {
            self.inner().state = Some((source.to_owned(), true));
            Ok(())
        }
    }

    async fn moved(source: &Memory, target: &Memory) -> (Result<u64, TransferError>, Vec<Stage>) {
        let mut stages = Vec::new();
        let report = transfer(source, target, BOUND, &mut |stage| stages.push(stage)).await;
        (report.map(|report| report.tables.iter().map(|verified| verified.tally.rows).sum()), stages)
    }

    #[tokio::test]
    async fn every_row_of_every_table_arrives_once() {
        let (source, target) = (Memory::filled(7), Memory::default());
        let (rows, stages) = moved(&source, &target).await;
        assert_eq!(rows.unwrap(), 7 * Table::ALL.len() as u64);
        assert_eq!(target.inner().rows, source.inner().rows);
        assert_eq!((stages[0], stages[1], stages[2]), (Stage::Begun, Stage::Copied(Table::Tenants, 3), Stage::Copied(Table::Tenants, 6)));
        assert!(matches!(moved(&source, &target).await.0, Err(TransferError::Finished)));
    }

    #[tokio::test]
    async fn an_interrupted_transfer_goes_on_where_it_stopped() {
        let (source, target) = (Memory::filled(7), Memory::default());
        let mut runs = 0;
        loop {
            target.inner().left = 3;
            let (outcome, stages) = moved(&source, &target).await;
            assert_eq!(stages[0], if runs == 0 { Stage::Begun } else { Stage::Resumed });
            match outcome {
                Ok(_) => break,
                Err(TransferError::Target(StoreError::Unavailable)) => runs += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(runs > 20, "{runs}");
        assert_eq!(target.inner().rows, source.inner().rows);
    }

    #[tokio::test]
    async fn what_holds_something_else_is_not_touched() {
        let (source, other) = (Memory::filled(2), Memory::filled(1));
        assert!(matches!(moved(&source, &other).await.0, Err(TransferError::Foreign)));
        let half = Memory::default();
        half.inner().left = 5;
        assert!(moved(&source, &half).await.0.is_err());
        let before = half.inner().rows.clone();
        source.inner().rows.get_mut(&Table::LogHeads).unwrap()[0][3] = Value::Integer(99);
        assert!(matches!(moved(&source, &half).await.0, Err(TransferError::Foreign)), "its log went on meanwhile");
        assert_eq!(half.inner().rows, before);
    }

    #[tokio::test]
    async fn a_single_other_value_is_found_and_nothing_is_finished() {
        for at in 0..3 {
            let (source, target) = (Memory::filled(4), Memory::default());
            target.inner().left = 30;
            assert!(moved(&source, &target).await.0.is_err(), "interrupted");
            target.inner().left = 0;
            target.inner().rows.get_mut(&Table::Spaces).unwrap()[at][0] = Value::Text("other".to_owned());
            let (outcome, _) = moved(&source, &target).await;
            assert!(matches!(outcome, Err(TransferError::Differs { table: Table::Spaces, .. })), "{outcome:?}");
            assert!(matches!(target.inner().state, Some((_, false))));
        }
    }

    #[test]
    fn names_of_tables_and_columns_are_unique() {
        let mut names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Table::ALL.len());
        for table in Table::ALL {
            let mut columns: Vec<_> = table.columns().iter().map(|column| column.name).collect();
            columns.sort_unstable();
            columns.dedup();
            assert_eq!(columns.len(), table.columns().len(), "{}", table.name());
        }
    }
}
