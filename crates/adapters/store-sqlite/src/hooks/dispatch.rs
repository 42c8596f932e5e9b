//! Who dispatches, and how far the logs were looked at.

use domain::{StoreError, TenantId};
use hooks::{Generation, GroupNumber, LogPosition, TenantHooks};
use rusqlite::params;

use super::readable::{Table, one};
use super::rows;
use crate::codec;
use crate::failure::Failure;
use crate::identity::{collect, first};
use crate::readers::ReadTx;
use crate::sql::sql;
use crate::tx::{WriteTx, read_head};

/// One process alone uses this store: whoever takes a group takes every tenant.
pub(super) const THE_GROUP: GroupNumber = GroupNumber(0);

/// The groups that there are.
pub(super) fn groups(tx: &ReadTx) -> Result<Vec<GroupNumber>, Failure> {
    let mut statement = tx.prepare(sql!("hooks/groups"))?;
    collect(statement.query([])?, |row| Ok(GroupNumber(row.get(0)?)))
}

/// Active tenants of these groups that have a hook, by id, strictly after `after`, at most `limit`.
pub(super) fn tenants(tx: &ReadTx, groups: &[GroupNumber], after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantHooks>, Failure> {
    let mut statement = tx.prepare(sql!("hooks/next_tenant"))?;
    let mut after = after.map(ToString::to_string).unwrap_or_default();
    let mut tenants = Vec::new();
    while tenants.len() < limit && groups.contains(&THE_GROUP) {
        let Some(name) = first(statement.query([&after])?, |row| Ok(row.get::<_, String>(0)?))? else { break };
        if let Ok(tenant) = name.parse::<TenantId>()
            && read_head(tx.connection(), &tenant)?.is_some_and(|head| head.is_active())
        {
            let position = position(tx, &tenant)?;
            tenants.push(TenantHooks { tenant, group: THE_GROUP, position });
        }
        after = name;
    }
    Ok(tenants)
}

fn position(tx: &ReadTx, tenant: &TenantId) -> Result<Option<LogPosition>, Failure> {
    let mut statement = tx.prepare(sql!("hooks/position"))?;
    one(statement.query([tenant.as_str()])?, Table::Positions, tx.metrics(), rows::position)
}

/// Takes a group: raises its generation and answers it.
pub(super) fn take(tx: &WriteTx, group: GroupNumber) -> Result<Generation, Failure> {
    let mut statement = tx.prepare(sql!("hooks/take_group"))?;
    // Read to the end: a statement that is left early may not be finished.
    let taken = collect(statement.query([group.0])?, |row| codec::natural(row, 0).map(Generation))?;
    taken.into_iter().next().ok_or(Failure::Store(StoreError::Conflict("there is no such group")))
}

/// Moves the position of a tenant, if the group is still of that generation.
pub(super) fn advance(
    tx: &mut WriteTx,
    tenant: &TenantId,
    group: GroupNumber,
    generation: Generation,
    position: LogPosition,
) -> Result<bool, Failure> {
    let held = first(tx.prepare(sql!("hooks/generation"))?.query([group.0])?, |row| codec::natural(row, 0).map(Generation))?;
    if held != Some(generation) {
        return Ok(false);
    }
    tx.active_head(tenant)?;
    let values = params![tenant.as_str(), position.epoch.uuid().into_bytes(), codec::from_seq(position.seq)];
    tx.prepare(sql!("hooks/put_position"))?.execute(values)?;
    Ok(true)
}
