//! The reading port of `authz`.

use async_trait::async_trait;
use authz::{
    AuditEntry, AuditFilter, Channel, Credential, Grant, IdempotentAnswer, IdentityStore, Keyset, Principal, Rights, Space, Tenant,
    TokenHash, TokenRecord, TokenUse,
};
use domain::{ChannelRef, PrincipalId, SpaceId, StoreError, TenantId, Timestamp};
use rusqlite::params;
use uuid::Uuid;

use super::audit;
use super::rows::{self, collect, decision_word, first};
use super::write::{self, limit};
use crate::codec;
use crate::failure::Failure;
use crate::readers::ReadTx;
use crate::sql::sql;
use crate::store::SqliteStore;

/// Where a listing by text continues; every name is larger than the empty one.
fn after(keyset: &Keyset) -> &str {
    keyset.after.as_deref().unwrap_or_default()
}

/// Where a listing by UUID continues. What is no UUID stands behind every entry: it can only come from a forged cursor.
fn after_uuid(keyset: &Keyset) -> Uuid {
    keyset.after.as_deref().map_or(Uuid::nil(), |text| Uuid::try_parse(text).unwrap_or(Uuid::max()))
}

fn rights(tx: &ReadTx, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Rights>, Failure> {
    let Some(principal) = write::principal(tx.connection(), tenant, id)? else { return Ok(None) };
    let mut statement = tx.prepare(sql!("authz/rights_of"))?;
    let grants = collect(statement.query([tenant.as_str(), id.as_str()])?, |row| {
        Ok((codec::text(row, 0)?, codec::word(row, 1, authz::Permission::parse)?))
    })?;
    Ok(Some(Rights { principal: principal.id, kind: principal.kind, role: principal.role, enabled: principal.enabled, grants }))
}

#[async_trait]
impl IdentityStore for SqliteStore {
    async fn credential(&self, hash: &TokenHash) -> Result<Option<Credential>, StoreError> {
        let hash = hash.0;
        self.read(move |tx| first(tx.prepare(sql!("union/credential"))?.query([hash])?, rows::credential)).await
    }

    async fn rights(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Option<Rights>, StoreError> {
        let (tenant, principal) = (tenant.clone(), principal.clone());
        self.read(move |tx| rights(tx, &tenant, &principal)).await
    }

    async fn tenant(&self, tenant: &TenantId) -> Result<Option<Tenant>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |tx| first(tx.prepare(sql!("union/tenant"))?.query([tenant.as_str()])?, rows::tenant)).await
    }

    async fn tenants(&self, keyset: &Keyset) -> Result<Vec<Tenant>, StoreError> {
        let keyset = keyset.clone();
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("union/list_tenants"))?;
            collect(statement.query(params![after(&keyset), limit(keyset.limit)])?, rows::tenant)
        })
        .await
    }

    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.read(move |tx| write::principal(tx.connection(), &tenant, &id)).await
    }

    async fn principals(&self, tenant: &TenantId, keyset: &Keyset) -> Result<Vec<Principal>, StoreError> {
        let (tenant, keyset) = (tenant.clone(), keyset.clone());
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("authz/list_principals"))?;
            collect(statement.query(params![tenant.as_str(), after(&keyset), limit(keyset.limit)])?, rows::principal)
        })
        .await
    }

    async fn tokens(&self, tenant: &TenantId, principal: &PrincipalId, keyset: &Keyset) -> Result<Vec<TokenRecord>, StoreError> {
        let (tenant, principal, keyset) = (tenant.clone(), principal.clone(), keyset.clone());
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("authz/list_tokens"))?;
            let values = params![tenant.as_str(), principal.as_str(), after_uuid(&keyset).into_bytes(), limit(keyset.limit)];
            collect(statement.query(values)?, |row| rows::token(row, 0))
        })
        .await
    }

    async fn spaces(&self, tenant: &TenantId, keyset: &Keyset) -> Result<Vec<Space>, StoreError> {
        let (tenant, keyset) = (tenant.clone(), keyset.clone());
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("authz/list_spaces"))?;
            collect(statement.query(params![tenant.as_str(), after(&keyset), limit(keyset.limit)])?, rows::space)
        })
        .await
    }

    async fn channels(&self, tenant: &TenantId, space: &SpaceId, keyset: &Keyset) -> Result<Option<Vec<Channel>>, StoreError> {
        let (tenant, space, keyset) = (tenant.clone(), space.clone(), keyset.clone());
        self.read(move |tx| {
            if !write::space_exists(tx.connection(), &tenant, space.as_str())? {
                return Ok(None);
            }
            let mut statement = tx.prepare(sql!("authz/list_channels"))?;
            let values = params![tenant.as_str(), space.as_str(), after(&keyset), limit(keyset.limit)];
            collect(statement.query(values)?, |row| rows::channel(row, &space)).map(Some)
        })
        .await
    }

    async fn channel_exists(&self, tenant: &TenantId, channel: &ChannelRef) -> Result<bool, StoreError> {
        let (tenant, channel) = (tenant.clone(), channel.clone());
        self.read(move |tx| write::channel_exists(tx.connection(), &tenant, &channel)).await
    }

    async fn grants(&self, tenant: &TenantId, principal: Option<&PrincipalId>, keyset: &Keyset) -> Result<Vec<Grant>, StoreError> {
        let (tenant, principal, keyset) = (tenant.clone(), principal.cloned(), keyset.clone());
        self.read(move |tx| {
            let (from, limit) = (after_uuid(&keyset), limit(keyset.limit));
            match &principal {
                Some(principal) => {
                    let mut statement = tx.prepare(sql!("authz/list_grants_of"))?;
                    let values = params![tenant.as_str(), principal.as_str(), from.into_bytes(), limit];
                    collect(statement.query(values)?, rows::grant)
                }
                None => {
                    let mut statement = tx.prepare(sql!("authz/list_grants"))?;
                    collect(statement.query(params![tenant.as_str(), from.into_bytes(), limit])?, rows::grant)
                }
            }
        })
        .await
    }

    async fn audit(&self, tenant: &TenantId, filter: &AuditFilter, keyset: &Keyset) -> Result<Vec<AuditEntry>, StoreError> {
        let (tenant, filter, keyset) = (tenant.clone(), filter.clone(), keyset.clone());
        self.read(move |tx| {
            // Newest first, so what is no number stands behind every entry at 0.
            let before = keyset.after.as_deref().map_or(i64::MAX, |text| text.parse().unwrap_or(0));
            let mut statement = tx.prepare(sql!("authz/list_audit"))?;
            let values = params![
                tenant.as_str(),
                before,
                filter.actor.as_ref().map(PrincipalId::as_str),
                filter.action,
                filter.decision.map(decision_word),
                limit(keyset.limit),
            ];
            collect(statement.query(values)?, rows::audit_entry)
        })
        .await
    }

    async fn record_denials(&self, denials: &[(TenantId, AuditEntry)]) -> Result<(), StoreError> {
        let denials = denials.to_vec();
        self.write("record_denials", move |tx| audit::count_denials(tx, &denials)).await
    }

    async fn touch_tokens(&self, uses: &[TokenUse]) -> Result<(), StoreError> {
        let uses = uses.to_vec();
        self.write("touch_tokens", move |tx| uses.iter().try_for_each(|used| write::touch_token(tx, &used.tenant, used.token, used.at)))
            .await
    }

    async fn idempotent_answer(
        &self,
        tenant: &TenantId,
        principal: &PrincipalId,
        key: &str,
        not_before: Timestamp,
    ) -> Result<Option<IdempotentAnswer>, StoreError> {
        let (tenant, principal, key) = (tenant.clone(), principal.clone(), key.to_owned());
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("authz/answer"))?;
            let values = params![tenant.as_str(), principal.as_str(), key, not_before.as_micros()];
            first(statement.query(values)?, |row| {
                Ok(IdempotentAnswer { request_hash: codec::digest(row, 0)?, status: row.get(1)?, body: row.get(2)? })
            })
        })
        .await
    }

    async fn prune(&self, audit_before: Timestamp, answers_before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.write("prune", move |tx| audit::prune(tx, audit_before, answers_before, limit)).await
    }
}
