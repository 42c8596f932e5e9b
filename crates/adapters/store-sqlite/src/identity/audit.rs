//! The audit log and the stored answers of idempotent requests.

use authz::{AuditEntry, IdempotentAnswer};
use domain::{PrincipalId, StoreError, TenantId, Timestamp};
use rusqlite::params;

use super::rows::decision_word;
use crate::codec;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

const MINUTE_MICROS: i64 = 60_000_000;

/// Adds a line of its own.
pub(crate) fn add(tx: &WriteTx, tenant: &TenantId, entry: &AuditEntry) -> Result<(), Failure> {
    let values = params![
        tenant.as_str(),
        entry.at.as_micros(),
        entry.actor.as_ref().map(PrincipalId::as_str),
        entry.action,
        entry.target,
        decision_word(entry.decision),
        i64::try_from(entry.count).unwrap_or(i64::MAX),
        entry.before,
        entry.after,
    ];
    match tx.prepare(sql!("authz/add_audit"))?.execute(values).map_err(Failure::from) {
        Err(failure) if failure.is_foreign_key() => Err(StoreError::Conflict("there is no such tenant").into()),
        outcome => outcome.map(|_| ()),
    }
}

/// Adds up denials, one line per tenant, actor, action, target and minute.
pub(crate) fn count_denials(tx: &WriteTx, denials: &[(TenantId, AuditEntry)]) -> Result<(), Failure> {
    let mut statement = tx.prepare(sql!("authz/count_denial"))?;
    for (tenant, entry) in denials {
        statement.execute(params![
            tenant.as_str(),
            minute(entry.at),
            entry.actor.as_ref().map(PrincipalId::as_str),
            entry.action,
            entry.target,
            decision_word(entry.decision),
            i64::try_from(entry.count).unwrap_or(i64::MAX),
        ])?;
    }
    Ok(())
}

/// The start of the minute.
fn minute(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(MINUTE_MICROS) * MINUTE_MICROS
}

/// Stores the answer of a creating request; a key taken since `not_before` is a conflict, an older one is replaced.
pub(crate) fn store_answer(
    tx: &WriteTx,
    tenant: &TenantId,
    principal: &PrincipalId,
    key: &str,
    answer: &IdempotentAnswer,
    now: Timestamp,
    not_before: Timestamp,
) -> Result<(), Failure> {
    let values = params![
        tenant.as_str(),
        principal.as_str(),
        key,
        answer.request_hash,
        answer.status,
        answer.body,
        now.as_micros(),
        not_before.as_micros(),
    ];
    match tx.prepare(sql!("authz/store_answer"))?.execute(values).map_err(Failure::from) {
        Ok(0) => Err(StoreError::Conflict("the idempotency key is taken").into()),
        Ok(_) => Ok(()),
        Err(failure) if failure.is_foreign_key() => Err(StoreError::Conflict("there is no such principal").into()),
        Err(failure) => Err(failure),
    }
}

/// Removes old lines and answers, at most `limit` of each.
pub(crate) fn prune(tx: &WriteTx, audit_before: Timestamp, answers_before: Timestamp, limit: usize) -> Result<u64, Failure> {
    let limit = codec::from_count(limit);
    let lines = tx.prepare(sql!("authz/prune_audit"))?.execute(params![audit_before.as_micros(), limit])?;
    let answers = tx.prepare(sql!("authz/prune_answers"))?.execute(params![answers_before.as_micros(), limit])?;
    Ok((lines + answers) as u64)
}
