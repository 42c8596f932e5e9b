//! The rows of hooks as a whole.

use domain::{PrincipalId, StoreError, TenantId};
use hooks::{Challenge, DisabledCause, Hook, HookId, HookTotals};
use uuid::Uuid;

use super::readable::{Table, all};
use super::rows::{self, micros};
use crate::codec;
use crate::db::{self, Session};
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

pub(super) const NO_HOOK: Failure = Failure::Store(StoreError::Conflict("there is no such hook"));

/// Which hooks of a tenant.
#[derive(Clone, Debug)]
pub(super) enum Whose {
    /// All of them, by id.
    Everybodys,
    /// Those of these agents, by agent and id.
    Of(Vec<PrincipalId>),
}

/// One hook of a tenant.
pub(super) async fn find(connection: &mut Session, metrics: &StoreMetrics, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, Failure> {
    let rows = db::query(sql!("hooks/hook")).bind(tenant.as_str()).bind(id.uuid()).fetch_all(connection).await?;
    Ok(all(&rows, Table::Hooks, metrics, rows::hook)?.pop())
}

/// The same, locked until the end of the transaction.
pub(super) async fn lock(tx: &mut WriteTx, tenant: &TenantId, id: HookId) -> Result<Option<Hook>, Failure> {
    let rows = db::query(sql!("hooks/lock_hook")).bind(tenant.as_str()).bind(id.uuid()).fetch_all(tx.connection()).await?;
    Ok(all(&rows, Table::Hooks, tx.metrics(), rows::hook)?.pop())
}

/// Hooks of a tenant that are `wanted`: strictly after `after`, at most `limit`. A tenant has few enough to look at all.
pub(super) async fn list(
    connection: &mut Session,
    metrics: &StoreMetrics,
    tenant: &TenantId,
    whose: &Whose,
    after: Option<HookId>,
    limit: usize,
    wanted: impl Fn(&Hook) -> bool,
) -> Result<Vec<Hook>, Failure> {
    let after = after.map_or(Uuid::nil(), HookId::uuid);
    let rows = match whose {
        Whose::Everybodys => db::query(sql!("hooks/hooks_after")).bind(tenant.as_str()).bind(after).fetch_all(connection).await?,
        Whose::Of(agents) => {
            let agents: Vec<&str> = agents.iter().map(PrincipalId::as_str).collect();
            db::query(sql!("hooks/hooks_of")).bind(tenant.as_str()).bind(agents).bind(after).fetch_all(connection).await?
        }
    };
    let mut hooks = all(&rows, Table::Hooks, metrics, rows::hook)?;
    hooks.retain(wanted);
    hooks.truncate(limit);
    Ok(hooks)
}

/// How many hooks an agent and its tenant have. Whoever makes one counts first, and only one of a tenant does so at a time.
pub(super) async fn count(tx: &mut WriteTx, tenant: &TenantId, agent: &PrincipalId) -> Result<(u64, u64), Failure> {
    tx.lock_administration(tenant).await?;
    let counted = db::query(sql!("hooks/count_hooks")).bind(tenant.as_str()).bind(agent.as_str());
    let row = counted.fetch_one(tx.connection()).await?;
    Ok((codec::natural(&row, 0)?, codec::natural(&row, 1)?))
}

/// Stores a new hook. The first one of a tenant finds no position of earlier times: what came between them is nobody's business.
pub(super) async fn create(tx: &mut WriteTx, hook: &Hook) -> Result<(), Failure> {
    tx.active_head(&hook.tenant).await?;
    db::query(sql!("hooks/forget_position")).bind(hook.tenant.as_str()).execute(tx.connection()).await?;
    let challenge = hook.challenge.as_ref();
    let created = db::query(sql!("hooks/create_hook"))
        .bind(hook.id.uuid())
        .bind(hook.tenant.as_str())
        .bind(hook.agent.as_str())
        .bind(hook.kind.as_str())
        .bind(hook.profile.as_str())
        .bind(hook.url.reveal())
        .bind(rows::queues_text(&hook.queues)?)
        .bind(hook.ignore_presence)
        .bind(hook.max_rate_per_minute.map(i64::from))
        .bind(hook.state.as_str())
        .bind(hook.state.cause().map(DisabledCause::as_str))
        .bind(challenge.map(|challenge| challenge.delivery.as_str()))
        .bind(challenge.map(|challenge| challenge.nonce.as_str()))
        .bind(challenge.map(|challenge| challenge.text.as_str()))
        .bind(expiry(challenge))
        .bind(hook.health.last_status.map(i32::from))
        .bind(micros(hook.health.last_attempt_at))
        .bind(i64::from(hook.health.exhausted_in_row))
        .bind(codec::from_seq(hook.since))
        .bind(hook.created_at.as_micros())
        .execute(tx.connection())
        .await
        .map_err(Failure::from);
    match created {
        Err(failure) if failure.is_foreign_key() => Err(StoreError::Conflict("there is no such agent").into()),
        Err(failure) if failure.is_unique() => Err(StoreError::Conflict("the hook exists").into()),
        outcome => outcome.map(|_| ()),
    }
}

fn expiry(challenge: Option<&Challenge>) -> Option<i64> {
    micros(challenge.map(|challenge| challenge.expires_at))
}

/// Writes what can change of a hook.
pub(super) async fn save(tx: &mut WriteTx, hook: &Hook) -> Result<(), Failure> {
    let challenge = hook.challenge.as_ref();
    let saved = db::query(sql!("hooks/save_hook"))
        .bind(hook.id.uuid())
        .bind(hook.tenant.as_str())
        .bind(hook.profile.as_str())
        .bind(hook.url.reveal())
        .bind(rows::queues_text(&hook.queues)?)
        .bind(hook.ignore_presence)
        .bind(hook.max_rate_per_minute.map(i64::from))
        .bind(hook.state.as_str())
        .bind(hook.state.cause().map(DisabledCause::as_str))
        .bind(challenge.map(|challenge| challenge.delivery.as_str()))
        .bind(challenge.map(|challenge| challenge.nonce.as_str()))
        .bind(challenge.map(|challenge| challenge.text.as_str()))
        .bind(expiry(challenge))
        .bind(hook.health.last_status.map(i32::from))
        .bind(micros(hook.health.last_attempt_at))
        .bind(i64::from(hook.health.exhausted_in_row))
        .bind(codec::from_seq(hook.since))
        .execute(tx.connection())
        .await?;
    if saved.rows_affected() > 0 { Ok(()) } else { Err(NO_HOOK) }
}

/// Removes a hook; its keys, rings and attempts go with it.
pub(super) async fn delete(tx: &mut WriteTx, tenant: &TenantId, id: HookId) -> Result<(), Failure> {
    db::query(sql!("hooks/delete_hook")).bind(tenant.as_str()).bind(id.uuid()).execute(tx.connection()).await?;
    Ok(())
}

/// What metrics show.
pub(super) async fn totals(connection: &mut Session) -> Result<HookTotals, Failure> {
    let row = db::query(sql!("hooks/totals")).fetch_one(connection).await?;
    Ok(HookTotals {
        active: codec::natural(&row, 0)?,
        pending: codec::natural(&row, 1)?,
        disabled: codec::natural(&row, 2)?,
        outstanding: codec::natural(&row, 3)?,
    })
}
