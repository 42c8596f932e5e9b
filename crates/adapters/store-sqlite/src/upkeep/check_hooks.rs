//! Reading every hook with its keys, rings and attempts, and holding positions against the log.

use domain::{Seq, StoreError, TenantId};
use rusqlite::{Connection, Row, Rows, params};

use super::check::CheckReport;
use super::check_items::snapshot;
use crate::failure::Failure;
use crate::hooks::{Table, attempt, delivery, hook, key, position, server_key};
use crate::identity::first;
use crate::sql::sql;
use crate::tx::read_head;

/// Checks the hooks of a tenant, a snapshot for each.
pub(super) fn check(connection: &Connection, report: &mut CheckReport, tenant: &TenantId) -> Result<(), Failure> {
    snapshot(connection, || check_tenant(connection, report, tenant))?;
    // No hook is smaller than the empty key.
    let mut last = Some(Vec::new());
    while let Some(after) = last {
        last = snapshot(connection, || check_next(connection, report, tenant, &after))?;
    }
    Ok(())
}

/// Checks the server's own keys.
pub(super) fn check_server_keys(connection: &Connection, report: &mut CheckReport) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(sql!("hooks/server_keys"))?;
    let mut found = Found { report, tenant: None, is_sound: true };
    found.rows(statement.query([])?, Table::ServerKeys, |row| server_key(row).map(|_| None))
}

/// The position, and whether every hook knows when its first ring is due.
fn check_tenant(connection: &Connection, report: &mut CheckReport, tenant: &TenantId) -> Result<(), Failure> {
    let Some(head) = read_head(connection, tenant)? else { return Ok(()) };
    let mut found = Found { report, tenant: Some(tenant), is_sound: true };
    let mut statement = connection.prepare_cached(sql!("hooks/position"))?;
    found.rows(statement.query([tenant.as_str()])?, Table::Positions, |row| {
        let position = position(row)?;
        let is_ahead = position.epoch == head.epoch && position.seq > head.seq;
        Ok(is_ahead.then_some((position.seq, "hooks have looked at more than their log holds")))
    })?;
    let mut statement = connection.prepare_cached(sql!("hooks/strayed"))?;
    let strayed: Option<i64> = first(statement.query([tenant.as_str()])?, |row| Ok(row.get(0)?))?;
    for _ in 0..strayed.unwrap_or_default() {
        found.note(Seq::ZERO, "a hook does not know when its first ring is due");
    }
    Ok(())
}

/// Checks the hook after `after` and answers its key.
fn check_next(connection: &Connection, report: &mut CheckReport, tenant: &TenantId, after: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    let Some(head) = read_head(connection, tenant)? else { return Ok(None) };
    let mut found = Found { report, tenant: Some(tenant), is_sound: true };
    let mut statement = connection.prepare_cached(sql!("hooks/hooks_after"))?;
    let mut rows = statement.query(params![tenant.as_str(), after])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let id: Vec<u8> = row.get(0)?;
    let ahead = |seq: Seq, reason: &'static str| (seq > head.seq).then_some((seq, reason));
    let is_ahead = hook(row).map(|hook| ahead(hook.since, "a hook was made above the head of the log"));
    found.row(is_ahead, Table::Hooks)?;
    let mut keys = connection.prepare_cached(sql!("hooks/keys"))?;
    found.rows(keys.query([&id])?, Table::Keys, |row| key(row).map(|_| None))?;
    let mut rings = connection.prepare_cached(sql!("hooks/deliveries"))?;
    found.rows(rings.query(params![id, i64::MAX])?, Table::Deliveries, |row| {
        delivery(row, tenant).map(|ring| ahead(ring.cause, "the cause of a ring lies above the head of the log"))
    })?;
    let mut attempts = connection.prepare_cached(sql!("hooks/attempts"))?;
    found.rows(attempts.query([&id])?, Table::Attempts, |row| attempt(row).map(|_| None))?;
    found.report.hooks += u64::from(found.is_sound);
    Ok(Some(id))
}

/// What a readable row contradicts, and at which position.
type Contradiction = Option<(Seq, &'static str)>;

/// What was found of one hook, or of one table.
struct Found<'a> {
    report: &'a mut CheckReport,
    tenant: Option<&'a TenantId>,
    is_sound: bool,
}

impl Found<'_> {
    fn rows(
        &mut self,
        mut rows: Rows<'_>,
        table: Table,
        mut read: impl FnMut(&Row<'_>) -> Result<Contradiction, Failure>,
    ) -> Result<(), Failure> {
        while let Some(row) = rows.next()? {
            self.row(read(row), table)?;
        }
        Ok(())
    }

    fn row(&mut self, read: Result<Contradiction, Failure>, table: Table) -> Result<(), Failure> {
        match read {
            Ok(None) => {}
            Ok(Some((seq, reason))) => self.note(seq, reason),
            Err(Failure::Store(StoreError::Corrupt(reason))) => self.note(Seq::ZERO, format!("{}: {reason}", table.name())),
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    fn note(&mut self, seq: Seq, reason: impl Into<String>) {
        self.is_sound = false;
        self.report.note(self.tenant, seq, reason);
    }
}
