//! Who dispatches, and how far the logs were looked at.

use domain::{StoreError, TenantId};
use hooks::{Generation, GroupNumber, LogPosition, TenantHooks};

use super::readable::{Table, readable};
use super::rows;
use crate::codec;
use crate::db::{self, PgRow, Session};
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

/// A group in `column`.
pub(super) fn group(row: &PgRow, column: usize) -> Result<GroupNumber, Failure> {
    u32::try_from(codec::get::<i32>(row, column)?).map(GroupNumber).map_err(|_| codec::unreadable(column))
}

/// Groups as a statement takes them.
pub(super) fn numbers(groups: &[GroupNumber]) -> Vec<i32> {
    groups.iter().filter_map(|group| number(*group)).collect()
}

/// A group that no column can hold is none that there is.
fn number(group: GroupNumber) -> Option<i32> {
    i32::try_from(group.0).ok()
}

/// The groups that there are.
pub(super) async fn groups(connection: &mut Session) -> Result<Vec<GroupNumber>, Failure> {
    db::query(sql!("hooks/groups")).fetch_all(connection).await?.iter().map(|row| group(row, 0)).collect()
}

/// Active tenants of these groups that have a hook, by id, strictly after `after`, at most `limit`.
pub(super) async fn tenants(
    connection: &mut Session,
    metrics: &StoreMetrics,
    groups: &[GroupNumber],
    after: Option<&TenantId>,
    limit: usize,
) -> Result<Vec<TenantHooks>, Failure> {
    let tenants = db::query(sql!("union/hooks_tenants")).bind(numbers(groups)).bind(after.map_or("", TenantId::as_str));
    let rows = tenants.bind(codec::from_count(limit)).fetch_all(connection).await?;
    let tenant = |row: &PgRow| {
        let position = readable(row, rows::position(row), Table::Positions, metrics)?.flatten();
        Ok(TenantHooks { tenant: codec::text(row, 0)?, group: group(row, 1)?, position })
    };
    rows.iter().map(tenant).collect()
}

/// Takes a group: raises its generation and answers it.
pub(super) async fn take(tx: &mut WriteTx, group: GroupNumber) -> Result<Generation, Failure> {
    let taken = db::query(sql!("hooks/take_group")).bind(number(group)).fetch_optional(tx.connection()).await?;
    let row = taken.ok_or(Failure::Store(StoreError::Conflict("there is no such group")))?;
    codec::natural(&row, 0).map(Generation)
}

/// Moves the position of a tenant, if the group is still of that generation. Nobody takes the group until the transaction has ended.
pub(super) async fn advance(
    tx: &mut WriteTx,
    tenant: &TenantId,
    group: GroupNumber,
    generation: Generation,
    position: LogPosition,
) -> Result<bool, Failure> {
    let held = db::query(sql!("hooks/generation")).bind(number(group)).fetch_optional(tx.connection()).await?;
    let held = held.map(|row| codec::natural(&row, 0).map(Generation)).transpose()?;
    if held != Some(generation) {
        return Ok(false);
    }
    tx.active_head(tenant).await?;
    let put = db::query(sql!("hooks/put_position")).bind(tenant.as_str()).bind(position.epoch.uuid());
    put.bind(codec::from_seq(position.seq)).execute(tx.connection()).await?;
    Ok(true)
}
