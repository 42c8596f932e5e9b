//! The rows of hooks as a whole.

use domain::{PrincipalId, StoreError, TenantId};
use hooks::{Hook, HookId, HookTotals};
use rusqlite::{Connection, params};

use super::readable::{Table, one, some};
use super::rows::{self, micros};
use crate::codec;
use crate::failure::Failure;
use crate::identity::first;
use crate::metrics::StoreMetrics;
use crate::readers::ReadTx;
use crate::sql::sql;
use crate::tx::WriteTx;

pub(super) const NO_HOOK: Failure = Failure::Store(StoreError::Conflict("there is no such hook"));

/// One hook of a tenant.
pub(super) fn find(connection: &Connection, metrics: &StoreMetrics, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, Failure> {
    let mut statement = connection.prepare_cached(sql!("hooks/hook"))?;
    one(statement.query(params![id.uuid().into_bytes(), tenant.as_str()])?, Table::Hooks, metrics, rows::hook)
}

/// Hooks of a tenant, or of one of its agents, that are `wanted`: by id, strictly after `after`, at most `limit`.
pub(super) fn list(
    tx: &ReadTx,
    tenant: &TenantId,
    agent: Option<&PrincipalId>,
    after: Option<HookId>,
    limit: usize,
    wanted: impl Fn(&Hook) -> bool,
) -> Result<Vec<Hook>, Failure> {
    // No hook is smaller than the empty key.
    let after = after.map(|id| id.uuid().into_bytes().to_vec()).unwrap_or_default();
    let mut statement = tx.prepare(if agent.is_some() { sql!("hooks/hooks_of") } else { sql!("hooks/hooks_after") })?;
    let rows = match agent {
        Some(agent) => statement.query(params![tenant.as_str(), agent.as_str(), after])?,
        None => statement.query(params![tenant.as_str(), after])?,
    };
    some(rows, Table::Hooks, tx.metrics(), limit, |row| Ok(Some(rows::hook(row)?).filter(&wanted)))
}

/// The tenant of a hook; `None` when it is gone.
pub(super) fn tenant_of(connection: &Connection, id: HookId) -> Result<Option<TenantId>, Failure> {
    let mut statement = connection.prepare_cached(sql!("hooks/tenant_of"))?;
    first(statement.query([id.uuid().into_bytes()])?, |row| codec::text(row, 0))
}

/// How many hooks an agent and its tenant have. The writer is alone: the numbers stay as they are until the transaction ends.
pub(super) fn count(tx: &WriteTx, tenant: &TenantId, agent: &PrincipalId) -> Result<(u64, u64), Failure> {
    let of_agent =
        first(tx.prepare(sql!("hooks/count_of_agent"))?.query([tenant.as_str(), agent.as_str()])?, |row| codec::natural(row, 0))?;
    let of_tenant = first(tx.prepare(sql!("hooks/count_of_tenant"))?.query([tenant.as_str()])?, |row| codec::natural(row, 0))?;
    Ok((of_agent.unwrap_or_default(), of_tenant.unwrap_or_default()))
}

/// Stores a new hook. The first one of a tenant finds no position of earlier times: what came between them is nobody's business.
pub(super) fn create(tx: &mut WriteTx, hook: &Hook) -> Result<(), Failure> {
    tx.active_head(&hook.tenant)?;
    tx.prepare(sql!("hooks/forget_position"))?.execute([hook.tenant.as_str()])?;
    let challenge = hook.challenge.as_ref();
    let values = params![
        hook.id.uuid().into_bytes(),
        hook.tenant.as_str(),
        hook.agent.as_str(),
        hook.kind.as_str(),
        hook.profile.as_str(),
        hook.url.reveal(),
        rows::queues_text(&hook.queues)?,
        hook.ignore_presence,
        hook.max_rate_per_minute,
        hook.state.as_str(),
        hook.state.cause().map(hooks::DisabledCause::as_str),
        challenge.map(|challenge| challenge.delivery.as_str()),
        challenge.map(|challenge| challenge.nonce.as_str()),
        challenge.map(|challenge| challenge.text.as_str()),
        micros(challenge.map(|challenge| challenge.expires_at)),
        hook.health.last_status,
        micros(hook.health.last_attempt_at),
        hook.health.exhausted_in_row,
        codec::from_seq(hook.since),
        hook.created_at.as_micros(),
    ];
    match tx.prepare(sql!("hooks/create_hook"))?.execute(values).map_err(Failure::from) {
        Err(failure) if failure.is_foreign_key() => Err(StoreError::Conflict("there is no such agent").into()),
        Err(failure) if failure.is_unique() => Err(StoreError::Conflict("the hook exists").into()),
        outcome => outcome.map(|_| ()),
    }
}

/// Writes what can change of a hook.
pub(super) fn save(tx: &WriteTx, hook: &Hook) -> Result<(), Failure> {
    let challenge = hook.challenge.as_ref();
    let values = params![
        hook.id.uuid().into_bytes(),
        hook.tenant.as_str(),
        hook.profile.as_str(),
        hook.url.reveal(),
        rows::queues_text(&hook.queues)?,
        hook.ignore_presence,
        hook.max_rate_per_minute,
        hook.state.as_str(),
        hook.state.cause().map(hooks::DisabledCause::as_str),
        challenge.map(|challenge| challenge.delivery.as_str()),
        challenge.map(|challenge| challenge.nonce.as_str()),
        challenge.map(|challenge| challenge.text.as_str()),
        micros(challenge.map(|challenge| challenge.expires_at)),
        hook.health.last_status,
        micros(hook.health.last_attempt_at),
        hook.health.exhausted_in_row,
        codec::from_seq(hook.since),
    ];
    if tx.prepare(sql!("hooks/save_hook"))?.execute(values)? > 0 { Ok(()) } else { Err(NO_HOOK) }
}

/// Removes a hook; its keys, rings and attempts go with it.
pub(super) fn delete(tx: &WriteTx, tenant: &TenantId, id: HookId) -> Result<(), Failure> {
    tx.prepare(sql!("hooks/delete_hook"))?.execute(params![id.uuid().into_bytes(), tenant.as_str()])?;
    Ok(())
}

/// What metrics show.
pub(super) fn totals(tx: &ReadTx) -> Result<HookTotals, Failure> {
    let mut statement = tx.prepare(sql!("hooks/totals"))?;
    let totals = first(statement.query([])?, |row| {
        let [active, pending, disabled, outstanding] = [0, 1, 2, 3].map(|column| codec::natural(row, column));
        Ok(HookTotals { active: active?, pending: pending?, disabled: disabled?, outstanding: outstanding? })
    })?;
    Ok(totals.unwrap_or_default())
}
