//! The audit log and the stored answers of idempotent requests.

use async_trait::async_trait;
use authz::{AnswerWrite, AuditEntry, AuditWrite, IdempotentAnswer};
use domain::{PrincipalId, StoreError, TenantId, Timestamp};

use super::rows::decision_word;
use super::write;
use crate::codec;
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

const MINUTE_MICROS: i64 = 60_000_000;

/// Adds a line of its own.
async fn add(tx: &mut WriteTx, tenant: &TenantId, entry: &AuditEntry) -> Result<(), Failure> {
    let added = db::query(sql!("authz/add_audit"))
        .bind(tenant.as_str())
        .bind(entry.at.as_micros())
        .bind(entry.actor.as_ref().map(PrincipalId::as_str))
        .bind(&entry.action)
        .bind(&entry.target)
        .bind(decision_word(entry.decision))
        .bind(count(entry))
        .bind(entry.before.as_deref())
        .bind(entry.after.as_deref())
        .execute(tx.connection())
        .await?;
    match added.rows_affected() {
        0 => Err(StoreError::Conflict(write::NO_TENANT).into()),
        _ => Ok(()),
    }
}

fn count(entry: &AuditEntry) -> i64 {
    i64::try_from(entry.count).unwrap_or(i64::MAX)
}

/// Adds up denials, one line per tenant, actor, action, target and minute.
pub(super) async fn count_denials(tx: &mut WriteTx, denials: &[(TenantId, AuditEntry)]) -> Result<(), Failure> {
    let column = |read: fn(&AuditEntry) -> &str| denials.iter().map(|(_, entry)| read(entry)).collect::<Vec<_>>();
    db::query(sql!("authz/count_denials"))
        .bind(denials.iter().map(|(tenant, _)| tenant.as_str()).collect::<Vec<_>>())
        .bind(denials.iter().map(|(_, entry)| minute(entry.at)).collect::<Vec<_>>())
        .bind(denials.iter().map(|(_, entry)| entry.actor.as_ref().map(PrincipalId::as_str)).collect::<Vec<_>>())
        .bind(column(|entry| &entry.action))
        .bind(column(|entry| &entry.target))
        .bind(column(|entry| decision_word(entry.decision)))
        .bind(denials.iter().map(|(_, entry)| count(entry)).collect::<Vec<_>>())
        .execute(tx.connection())
        .await?;
    Ok(())
}

/// The start of the minute.
fn minute(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(MINUTE_MICROS) * MINUTE_MICROS
}

/// Removes old lines and answers, at most `limit` of each.
pub(super) async fn prune(tx: &mut WriteTx, audit_before: Timestamp, answers_before: Timestamp, limit: usize) -> Result<u64, Failure> {
    let limit = codec::from_count(limit);
    let lines = db::query(sql!("authz/prune_audit")).bind(audit_before.as_micros()).bind(limit).execute(tx.connection()).await?;
    let answers = db::query(sql!("authz/prune_answers")).bind(answers_before.as_micros()).bind(limit).execute(tx.connection()).await?;
    Ok(lines.rows_affected() + answers.rows_affected())
}

/// Stores the answer of a creating request; a key taken since `not_before` is a conflict, an older one is replaced.
async fn store_answer(
    tx: &mut WriteTx,
    (tenant, principal, key): (&TenantId, &PrincipalId, &str),
    answer: &IdempotentAnswer,
    now: Timestamp,
    not_before: Timestamp,
) -> Result<(), Failure> {
    let stored = db::query(sql!("authz/store_answer"))
        .bind(tenant.as_str())
        .bind(principal.as_str())
        .bind(key)
        .bind(answer.request_hash.as_slice())
        .bind(i32::from(answer.status))
        .bind(&answer.body)
        .bind(now.as_micros())
        .bind(not_before.as_micros())
        .execute(tx.connection())
        .await?;
    if stored.rows_affected() > 0 {
        return Ok(());
    }
    let known = write::principal(tx.connection(), tenant, principal).await?;
    let reason = if known.is_some() { "the idempotency key is taken" } else { write::NO_PRINCIPAL };
    Err(StoreError::Conflict(reason).into())
}

#[async_trait]
impl AuditWrite for WriteTx {
    async fn audit(&mut self, tenant: &TenantId, entry: &AuditEntry) -> Result<(), StoreError> {
        Ok(add(self, tenant, entry).await?)
    }
}

#[async_trait]
impl AnswerWrite for WriteTx {
    async fn store_answer(
        &mut self,
        tenant: &TenantId,
        principal: &PrincipalId,
        key: &str,
        answer: &IdempotentAnswer,
        now: Timestamp,
        not_before: Timestamp,
    ) -> Result<(), StoreError> {
        Ok(store_answer(self, (tenant, principal, key), answer, now, not_before).await?)
    }
}
