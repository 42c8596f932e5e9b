//! Rows as the values of `authz`. Each function names the columns that it expects, in order.

use authz::{
    AuditDecision, AuditEntry, Channel, Credential, Grant, Permission, Principal, PrincipalKind, Role, Scopes, Space, Tenant, TenantState,
    TokenHash, TokenRecord,
};
use domain::{GrantId, SpaceId, SyncEpoch, TenantId, TokenId};
use rusqlite::{Row, Rows};

use crate::codec;
use crate::failure::Failure;

/// All rows, each through `read`.
pub(crate) fn collect<T>(mut rows: Rows<'_>, mut read: impl FnMut(&Row<'_>) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
    let mut values = Vec::new();
    while let Some(row) = rows.next()? {
        values.push(read(row)?);
    }
    Ok(values)
}

/// The first row, if any, through `read`.
pub(crate) fn first<T>(mut rows: Rows<'_>, read: impl FnOnce(&Row<'_>) -> Result<T, Failure>) -> Result<Option<T>, Failure> {
    rows.next()?.map(read).transpose()
}

/// `principal_id, kind, role, display_name, enabled, created_at`.
pub(crate) fn principal(row: &Row<'_>) -> Result<Principal, Failure> {
    Ok(Principal {
        id: codec::text(row, 0)?,
        kind: codec::word(row, 1, PrincipalKind::parse)?,
        role: codec::word(row, 2, Role::parse)?,
        display_name: row.get(3)?,
        enabled: row.get(4)?,
        created_at: codec::timestamp(row, 5)?,
    })
}

/// `token_id, principal_id, hash, prefix, scopes, created_at, expires_at, last_used_at, revoked_at`, from column `at` on.
pub(crate) fn token(row: &Row<'_>, at: usize) -> Result<TokenRecord, Failure> {
    Ok(TokenRecord {
        id: TokenId::new(codec::uuid(row, at)?),
        principal: codec::text(row, at + 1)?,
        hash: TokenHash(codec::digest(row, at + 2)?),
        prefix: row.get(at + 3)?,
        scopes: Scopes::from_words(&row.get::<_, String>(at + 4)?),
        created_at: codec::timestamp(row, at + 5)?,
        expires_at: codec::optional_timestamp(row, at + 6)?,
        last_used_at: codec::optional_timestamp(row, at + 7)?,
        revoked_at: codec::optional_timestamp(row, at + 8)?,
    })
}

/// `tenant_id, state`, a token from 2 on, `kind, role, display_name, enabled, created_at` of its principal.
pub(crate) fn credential(row: &Row<'_>) -> Result<Credential, Failure> {
    let token = token(row, 2)?;
    let principal = Principal {
        id: token.principal.clone(),
        kind: codec::word(row, 11, PrincipalKind::parse)?,
        role: codec::word(row, 12, Role::parse)?,
        display_name: row.get(13)?,
        enabled: row.get(14)?,
        created_at: codec::timestamp(row, 15)?,
    };
    Ok(Credential { tenant: codec::text(row, 0)?, tenant_state: codec::word(row, 1, TenantState::parse)?, token, principal })
}

/// `tenant_id, state, head, epoch, created_at`.
pub(crate) fn tenant(row: &Row<'_>) -> Result<Tenant, Failure> {
    Ok(Tenant {
        id: codec::text::<TenantId>(row, 0)?,
        state: codec::word(row, 1, TenantState::parse)?,
        head: codec::seq(row, 2)?,
        epoch: SyncEpoch::new(codec::uuid(row, 3)?),
        created_at: codec::timestamp(row, 4)?,
    })
}

/// `space_id, created_at`.
pub(crate) fn space(row: &Row<'_>) -> Result<Space, Failure> {
    Ok(Space { id: codec::text(row, 0)?, created_at: codec::timestamp(row, 1)? })
}

/// `channel_id, created_at`.
pub(crate) fn channel(row: &Row<'_>, space: &SpaceId) -> Result<Channel, Failure> {
    Ok(Channel { space: space.clone(), id: codec::text(row, 0)?, created_at: codec::timestamp(row, 1)? })
}

/// `grant_id, principal_id, resource, permission, created_at`.
pub(crate) fn grant(row: &Row<'_>) -> Result<Grant, Failure> {
    Ok(Grant {
        id: GrantId::new(codec::uuid(row, 0)?),
        principal: codec::text(row, 1)?,
        resource: codec::text(row, 2)?,
        permission: codec::word(row, 3, Permission::parse)?,
        created_at: codec::timestamp(row, 4)?,
    })
}

/// `entry_id, at, actor, action, target, decision, count, before, after`.
pub(crate) fn audit_entry(row: &Row<'_>) -> Result<AuditEntry, Failure> {
    Ok(AuditEntry {
        id: codec::natural(row, 0)?,
        at: codec::timestamp(row, 1)?,
        actor: codec::optional_text(row, 2)?,
        action: row.get(3)?,
        target: row.get(4)?,
        decision: codec::word(row, 5, parse_decision)?,
        count: codec::natural(row, 6)?,
        before: row.get(7)?,
        after: row.get(8)?,
    })
}

/// The word of a decision.
pub(crate) const fn decision_word(decision: AuditDecision) -> &'static str {
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
