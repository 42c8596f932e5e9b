//! The reading port of `authz`. Every answer comes from one statement, and so from one snapshot, unless it says otherwise.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{
    AuditEntry, AuditFilter, Channel, Credential, Grant, IdempotentAnswer, IdentityStore, Keyset, Permission, Principal, Rights, Space,
    Tenant, TokenHash, TokenRecord, TokenUse,
};
use domain::{ChannelRef, PrincipalId, SpaceId, StoreError, TenantId, Timestamp};
use uuid::Uuid;

use super::rows::{self, collect, decision_word};
use super::{audit, write};
use crate::codec;
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::store::PostgresStore;

/// Where a listing by text continues; every name is larger than the empty one.
fn after(keyset: &Keyset) -> &str {
    keyset.after.as_deref().unwrap_or_default()
}

/// Where a listing by UUID continues. What is no UUID stands behind every entry: it can only come from a forged cursor.
fn after_uuid(keyset: &Keyset) -> Uuid {
    keyset.after.as_deref().map_or(Uuid::nil(), |text| Uuid::try_parse(text).unwrap_or(Uuid::max()))
}

impl PostgresStore {
    async fn find_rights(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Rights>, Failure> {
        let mut connection = self.reader().await?;
        let query = db::query(sql!("authz/rights_of")).bind(tenant.as_str()).bind(id.as_str());
        let found = query.fetch_all(&mut *connection).await?;
        let Some(first) = found.first() else { return Ok(None) };
        let principal = rows::principal(first)?;
        let mut grants = Vec::new();
        for row in &found {
            // A principal without grants is one row without one.
            if codec::get::<Option<&str>>(row, 6)?.is_some() {
                grants.push((codec::text(row, 6)?, codec::word(row, 7, Permission::parse)?));
            }
        }
        Ok(Some(Rights { principal: principal.id, kind: principal.kind, role: principal.role, enabled: principal.enabled, grants }))
    }

    async fn list_channels(&self, tenant: &TenantId, space: &SpaceId, keyset: &Keyset) -> Result<Option<Vec<Channel>>, Failure> {
        let mut snapshot = self.snapshot().await?;
        if !write::space_exists(snapshot.connection(), tenant, space.as_str()).await? {
            return Ok(None);
        }
        let query = db::query(sql!("authz/list_channels")).bind(tenant.as_str()).bind(space.as_str()).bind(after(keyset));
        let found = query.bind(codec::from_count(keyset.limit)).fetch_all(snapshot.connection()).await?;
        collect(&found, |row| rows::channel(row, space)).map(Some)
    }

    async fn list_grants(&self, tenant: &TenantId, principal: Option<&PrincipalId>, keyset: &Keyset) -> Result<Vec<Grant>, Failure> {
        let mut connection = self.reader().await?;
        let query = match principal {
            Some(principal) => db::query(sql!("authz/list_grants_of")).bind(tenant.as_str()).bind(principal.as_str()),
            None => db::query(sql!("authz/list_grants")).bind(tenant.as_str()),
        };
        let query = query.bind(after_uuid(keyset)).bind(codec::from_count(keyset.limit));
        collect(&query.fetch_all(&mut *connection).await?, rows::grant)
    }

    async fn list_audit(&self, tenant: &TenantId, filter: &AuditFilter, keyset: &Keyset) -> Result<Vec<AuditEntry>, Failure> {
        // Newest first, so what is no number stands behind every entry at 0.
        let before = keyset.after.as_deref().map_or(i64::MAX, |text| text.parse().unwrap_or(0));
        let mut connection = self.reader().await?;
        let query = db::query(sql!("authz/list_audit"))
            .bind(tenant.as_str())
            .bind(before)
            .bind(filter.actor.as_ref().map(PrincipalId::as_str))
            .bind(filter.action.as_deref())
            .bind(filter.decision.map(decision_word))
            .bind(codec::from_count(keyset.limit));
        collect(&query.fetch_all(&mut *connection).await?, rows::audit_entry)
    }

    async fn find_answer(
        &self,
        (tenant, principal, key): (&TenantId, &PrincipalId, &str),
        not_before: Timestamp,
    ) -> Result<Option<IdempotentAnswer>, Failure> {
        let mut connection = self.reader().await?;
        let query = db::query(sql!("authz/answer")).bind(tenant.as_str()).bind(principal.as_str()).bind(key).bind(not_before.as_micros());
        query.fetch_optional(&mut *connection).await?.as_ref().map(rows::answer).transpose()
    }
}

/// One statement over one snapshot: all rows through `read`.
macro_rules! list {
    ($store:expr, $name:literal, [$($value:expr),*], $read:expr) => {{
        let mut connection = $store.reader().await?;
        let found = db::query(sql!($name))$(.bind($value))*.fetch_all(&mut *connection).await.map_err(Failure::from)?;
        Ok(collect(&found, $read)?)
    }};
}

/// The same, for at most one row.
macro_rules! find {
    ($store:expr, $name:literal, [$($value:expr),*], $read:expr) => {{
        let mut connection = $store.reader().await?;
        let found = db::query(sql!($name))$(.bind($value))*.fetch_optional(&mut *connection).await.map_err(Failure::from)?;
        Ok(found.as_ref().map($read).transpose()?)
    }};
}

#[async_trait]
impl IdentityStore for PostgresStore {
    async fn credential(&self, hash: &TokenHash) -> Result<Option<Credential>, StoreError> {
        find!(self, "union/credential", [hash.0.as_slice()], rows::credential)
    }

    async fn rights(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Option<Rights>, StoreError> {
        Ok(self.find_rights(tenant, principal).await?)
    }

    async fn tenant(&self, tenant: &TenantId) -> Result<Option<Tenant>, StoreError> {
        find!(self, "union/tenant", [tenant.as_str()], rows::tenant)
    }

    async fn tenants(&self, keyset: &Keyset) -> Result<Vec<Tenant>, StoreError> {
        list!(self, "union/list_tenants", [after(keyset), codec::from_count(keyset.limit)], rows::tenant)
    }

    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        find!(self, "authz/principal", [tenant.as_str(), id.as_str()], rows::principal)
    }

    async fn principals(&self, tenant: &TenantId, keyset: &Keyset) -> Result<Vec<Principal>, StoreError> {
        list!(self, "authz/list_principals", [tenant.as_str(), after(keyset), codec::from_count(keyset.limit)], rows::principal)
    }

    async fn tokens(&self, tenant: &TenantId, principal: &PrincipalId, keyset: &Keyset) -> Result<Vec<TokenRecord>, StoreError> {
        let limit = codec::from_count(keyset.limit);
        list!(self, "authz/list_tokens", [tenant.as_str(), principal.as_str(), after_uuid(keyset), limit], |row| rows::token(row, 0))
    }

    async fn spaces(&self, tenant: &TenantId, keyset: &Keyset) -> Result<Vec<Space>, StoreError> {
        list!(self, "authz/list_spaces", [tenant.as_str(), after(keyset), codec::from_count(keyset.limit)], rows::space)
    }

    async fn channels(&self, tenant: &TenantId, space: &SpaceId, keyset: &Keyset) -> Result<Option<Vec<Channel>>, StoreError> {
        Ok(self.list_channels(tenant, space, keyset).await?)
    }

    async fn channel_exists(&self, tenant: &TenantId, channel: &ChannelRef) -> Result<bool, StoreError> {
        let mut connection = self.reader().await?;
        Ok(write::channel_exists(&mut connection, tenant, channel).await?)
    }

    async fn grants(&self, tenant: &TenantId, principal: Option<&PrincipalId>, keyset: &Keyset) -> Result<Vec<Grant>, StoreError> {
        Ok(self.list_grants(tenant, principal, keyset).await?)
    }

    async fn audit(&self, tenant: &TenantId, filter: &AuditFilter, keyset: &Keyset) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(self.list_audit(tenant, filter, keyset).await?)
    }

    async fn record_denials(&self, denials: &[(TenantId, AuditEntry)]) -> Result<(), StoreError> {
        if denials.is_empty() {
            return Ok(());
        }
        let denials: Arc<[_]> = denials.into();
        self.write("record_denials", move |tx| {
            let denials = Arc::clone(&denials);
            Box::pin(async move { audit::count_denials(tx, &denials).await })
        })
        .await
    }

    async fn touch_tokens(&self, uses: &[TokenUse]) -> Result<(), StoreError> {
        if uses.is_empty() {
            return Ok(());
        }
        let uses: Arc<[_]> = uses.into();
        self.write("touch_tokens", move |tx| {
            let uses = Arc::clone(&uses);
            Box::pin(async move { write::touch_tokens(tx, &uses).await })
        })
        .await
    }

    async fn idempotent_answer(
        &self,
        tenant: &TenantId,
        principal: &PrincipalId,
        key: &str,
        not_before: Timestamp,
    ) -> Result<Option<IdempotentAnswer>, StoreError> {
        Ok(self.find_answer((tenant, principal, key), not_before).await?)
    }

    async fn prune(&self, audit_before: Timestamp, answers_before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.write("prune", move |tx| Box::pin(audit::prune(tx, audit_before, answers_before, limit))).await
    }
}
