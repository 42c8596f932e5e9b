//! Rows as the values of `authz`. Each function names the columns that it expects, in order.

use authz::{
    AuditDecision, AuditEntry, Channel, Credential, Grant, IdempotentAnswer, Permission, Principal, PrincipalKind, Role, Scopes, Space,
    Tenant, TenantState, TokenHash, TokenRecord,
};
use domain::{GrantId, SpaceId, SyncEpoch, TenantId, TokenId};

use crate::codec;
use crate::db::PgRow;
use crate::failure::Failure;

/// All rows, each through `read`.
pub(crate) fn collect<T>(rows: &[PgRow], read: impl FnMut(&PgRow) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
    rows.iter().map(read).collect()
}

/// `principal_id, kind, role, display_name, enabled, created_at`.
pub(super) fn principal(row: &PgRow) -> Result<Principal, Failure> {
    Ok(Principal {
        id: codec::text(row, 0)?,
        kind: codec::word(row, 1, PrincipalKind::parse)?,
        role: codec::word(row, 2, Role::parse)?,
        display_name: codec::get(row, 3)?,
        enabled: codec::get(row, 4)?,
        created_at: codec::timestamp(row, 5)?,
    })
}

/// `token_id, principal_id, hash, prefix, scopes, created_at, expires_at, last_used_at, revoked_at`, from column `at` on.
pub(super) fn token(row: &PgRow, at: usize) -> Result<TokenRecord, Failure> {
    Ok(TokenRecord {
        id: TokenId::new(codec::uuid(row, at)?),
        principal: codec::text(row, at + 1)?,
        hash: TokenHash(codec::digest(row, at + 2)?),
        prefix: codec::get(row, at + 3)?,
        scopes: Scopes::from_words(codec::get(row, at + 4)?),
        created_at: codec::timestamp(row, at + 5)?,
        expires_at: codec::optional_timestamp(row, at + 6)?,
        last_used_at: codec::optional_timestamp(row, at + 7)?,
        revoked_at: codec::optional_timestamp(row, at + 8)?,
    })
}

/// `tenant_id, state`, a token from 2 on, `kind, role, display_name, enabled, created_at` of its principal.
pub(super) fn credential(row: &PgRow) -> Result<Credential, Failure> {
    let token = token(row, 2)?;
    let principal = Principal {
        id: token.principal.clone(),
        kind: codec::word(row, 11, PrincipalKind::parse)?,
        role: codec::word(row, 12, Role::parse)?,
        display_name: codec::get(row, 13)?,
        enabled: codec::get(row, 14)?,
        created_at: codec::timestamp(row, 15)?,
    };
    Ok(Credential { tenant: codec::text(row, 0)?, tenant_state: codec::word(row, 1, TenantState::parse)?, token, principal })
}

/// `tenant_id, state, head, epoch, created_at`.
pub(super) fn tenant(row: &PgRow) -> Result<Tenant, Failure> {
    Ok(Tenant {
        id: codec::text::<TenantId>(row, 0)?,
        state: codec::word(row, 1, TenantState::parse)?,
        head: codec::seq(row, 2)?,
        epoch: SyncEpoch::new(codec::uuid(row, 3)?),
        created_at: codec::timestamp(row, 4)?,
    })
}

/// `space_id, created_at`.
pub(super) fn space(row: &PgRow) -> Result<Space, Failure> {
    Ok(Space { id: codec::text(row, 0)?, created_at: codec::timestamp(row, 1)? })
}

/// `channel_id, created_at`.
pub(super) fn channel(row: &PgRow, space: &SpaceId) -> Result<Channel, Failure> {
    Ok(Channel { space: space.clone(), id: codec::text(row, 0)?, created_at: codec::timestamp(row, 1)? })
}

/// `grant_id, principal_id, resource, permission, created_at`.
pub(super) fn grant(row: &PgRow) -> Result<Grant, Failure> {
    Ok(Grant {
        id: GrantId::new(codec::uuid(row, 0)?),
        principal: codec::text(row, 1)?,
        resource: codec::text(row, 2)?,
        permission: codec::word(row, 3, Permission::parse)?,
        created_at: codec::timestamp(row, 4)?,
    })
}

/// `entry_id, at, actor, action, target, decision, count, before, after`.
pub(super) fn audit_entry(row: &PgRow) -> Result<AuditEntry, Failure> {
    Ok(AuditEntry {
        id: codec::natural(row, 0)?,
        at: codec::timestamp(row, 1)?,
        actor: codec::optional_text(row, 2)?,
        action: codec::get(row, 3)?,
        target: codec::get(row, 4)?,
        decision: codec::word(row, 5, parse_decision)?,
        count: codec::natural(row, 6)?,
        before: codec::get(row, 7)?,
        after: codec::get(row, 8)?,
    })
}

/// `request_hash, status, body`.
pub(super) fn answer(row: &PgRow) -> Result<IdempotentAnswer, Failure> {
    let status: i32 = codec::get(row, 1)?;
    let status = u16::try_from(status).map_err(|_| Failure::corrupt("a stored answer has no valid status"))?;
    Ok(IdempotentAnswer { request_hash: codec::digest(row, 0)?, status, body: codec::get(row, 2)? })
}

/// The word of a decision.
pub(super) const fn decision_word(decision: AuditDecision) -> &'static str {
    match decision {
        AuditDecision::Allow => "allow",
        AuditDecision::Deny => "deny",
    }
}

fn parse_decision(word: &str) -> Option<AuditDecision> {
    match word {
        "allow" => Some(AuditDecision::Allow),
        "deny" => Some(AuditDecision::Deny),
        _ => None,
    }
}
