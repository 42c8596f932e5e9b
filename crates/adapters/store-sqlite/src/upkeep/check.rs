//! Reading everything: every row of the log against its checksum, every inbox item against the log, every hook, and the engine's own check of its file.

use domain::{Seq, StoreError, TenantId};
use rusqlite::{Connection, params};

use super::{UpkeepError, check_hooks, check_items};
use crate::codec::{self, Position};
use crate::connection;
use crate::failure::Failure;
use crate::identity::collect;
use crate::log::{self, Interner};
use crate::sql::sql;
use crate::store::SqliteStore;
use crate::tx::read_head;

/// Rows of one snapshot: what is retired meanwhile is not missed, and the write-ahead log is not held back for long.
pub(super) const CHUNK: usize = 5_000;
/// Damages that are told one by one; the others are counted.
const TOLD: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Tenants.
    pub tenants: u64,
    /// Rows of the log that were read and are unharmed, those that wait for their removal included.
    pub events: u64,
    /// Inbox items that were read and are unharmed, those that have ended included.
    pub items: u64,
    /// Hooks that were read and are unharmed, with their keys, rings and attempts.
    pub hooks: u64,
    /// Rows that are damaged or missing, the first of them one by one.
    pub damaged: Vec<Damage>,
    /// How many rows are damaged or missing.
    pub damages: u64,
    /// What the engine's check of its file complains about.
    pub engine: Vec<String>,
}

/// A row that is damaged or missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Whose log or inbox; absent for rows that belong to no tenant.
    pub tenant: Option<TenantId>,
    /// The position; of an inbox item its event's, zero where that cannot be read.
    pub seq: Seq,
    /// What is wrong.
    pub reason: String,
}

impl CheckReport {
    /// Whether everything is as it was written.
    pub fn is_sound(&self) -> bool {
        self.damages == 0 && self.engine.is_empty()
    }

    pub(super) fn note(&mut self, tenant: Option<&TenantId>, seq: Seq, reason: impl Into<String>) {
        self.damages += 1;
        if self.damaged.len() < TOLD {
            self.damaged.push(Damage { tenant: tenant.cloned(), seq, reason: reason.into() });
        }
    }
}

impl SqliteStore {
    /// Reads every row of every log and has the engine check its file, while the store goes on working.
    ///
    /// # Errors
    /// [`UpkeepError::Store`] when the store cannot be read at all. Damage is no error but part of the report.
    pub async fn check(&self) -> Result<CheckReport, UpkeepError> {
        let connection = connection::reader(self.path(), self.options())?;
        self.interrupt_on_close(&connection);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let snapshot = self.long_snapshot();
        self.start("store-check", move || {
            let _ = sender.send(check(&connection, Depth::Everything));
            drop(snapshot);
        })?;
        receiver.await.unwrap_or(Err(UpkeepError::Store(StoreError::Unavailable)))
    }
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Everything.
    Everything,
    /// Not inboxes and hooks: a store with an item or a ring that cannot be read is served, one with such a row of the log is not.
    Log,
}

/// Checks everything behind `connection`.
pub(crate) fn check(connection: &Connection, depth: Depth) -> Result<CheckReport, UpkeepError> {
    let mut report = CheckReport::default();
    check_engine(connection, &mut report)?;
    match check_logs(connection, &mut report, depth).map_err(StoreError::from) {
        // What the engine cannot read is damage too, not a reason to tell nothing.
        Err(StoreError::Corrupt(reason)) => report.engine.push(reason),
        outcome => outcome?,
    }
    Ok(report)
}

fn check_engine(connection: &Connection, report: &mut CheckReport) -> Result<(), UpkeepError> {
    let mut told = Vec::new();
    let checked = connection.pragma_query(None, "integrity_check", |row| {
        told.push(row.get::<_, String>(0)?);
        Ok(())
    });
    match checked.map_err(|error| StoreError::from(Failure::from(error))) {
        Err(StoreError::Corrupt(reason)) => told.push(reason),
        outcome => outcome?,
    }
    told.retain(|line| line != "ok");
    report.engine = told;
    Ok(())
}

fn check_logs(connection: &Connection, report: &mut CheckReport, depth: Depth) -> Result<(), Failure> {
    let logs = {
        let mut statement = connection.prepare_cached(sql!("sync/all_heads"))?;
        collect(statement.query([])?, |row| Ok((row.get::<_, i64>(0)?, codec::text::<TenantId>(row, 1)?)))?
    };
    let mut end_of_last = 0;
    for (number, tenant) in logs {
        note_strays(connection, report, end_of_last, Position::before(number))?;
        end_of_last = Position::after(number);
        report.tenants += 1;
        let mut reading = Reading { tenant, number, last: Seq::ZERO };
        while reading.chunk(connection, report)? {}
        if depth == Depth::Everything {
            check_items::check(connection, report, &reading.tenant, number)?;
            check_hooks::check(connection, report, &reading.tenant)?;
        }
    }
    if depth == Depth::Everything {
        check_hooks::check_server_keys(connection, report)?;
    }
    note_strays(connection, report, end_of_last, i64::MAX)
}

/// Rows between the logs belong to nobody.
fn note_strays(connection: &Connection, report: &mut CheckReport, from: i64, to: i64) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(sql!("sync/lowest_row"))?;
    let stray: Option<i64> = statement.query_row(params![from, to], |row| row.get(0))?;
    if let Some(position) = stray {
        report.note(None, Position::from_raw(position).seq(), "the row belongs to no tenant");
    }
    Ok(())
}

/// One log on its way through the check.
struct Reading {
    tenant: TenantId,
    number: i64,
    /// The last row seen.
    last: Seq,
}

impl Reading {
    /// Reads some rows in one snapshot; `false` at the end of the log.
    fn chunk(&mut self, connection: &Connection, report: &mut CheckReport) -> Result<bool, Failure> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        let more = self.rows(connection, report);
        connection.prepare_cached("ROLLBACK")?.execute([])?;
        more
    }

    fn rows(&mut self, connection: &Connection, report: &mut CheckReport) -> Result<bool, Failure> {
        let Some(head) = read_head(connection, &self.tenant)? else { return Ok(false) };
        let mut interner = Interner::default();
        let mut statement = connection.prepare_cached(sql!("sync/page"))?;
        let (from, to) = (Position::new(self.number, self.last)?.raw(), Position::new(self.number, head.seq)?.raw());
        let mut rows = statement.query(params![from, to])?;
        for _ in 0..CHUNK {
            let Some(row) = rows.next()? else {
                self.note_gap(report, head.floor, head.seq.next());
                return Ok(false);
            };
            let position = Position::from_raw(row.get(0)?);
            self.note_gap(report, head.floor, position.seq());
            match log::read(row, &mut interner, position) {
                Ok(_) => report.events += 1,
                Err(Failure::Store(StoreError::Corrupt(reason))) => report.note(Some(&self.tenant), position.seq(), reason),
                Err(failure) => return Err(failure),
            }
            self.last = position.seq();
        }
        Ok(true)
    }

    /// Rows between the last one and `found` are missing, unless retention removed them.
    fn note_gap(&self, report: &mut CheckReport, floor: Seq, found: Seq) {
        let first = self.last.next().max(floor);
        let missing = found.since(first);
        if missing > 0 {
            report.note(Some(&self.tenant), first, format!("{missing} events are missing from here"));
            report.damages += missing - 1;
        }
    }
}
