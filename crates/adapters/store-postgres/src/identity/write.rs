//! Changes of identities, as part of a transaction.
//!
//! Every method of the port takes the tenant's administration lock first: what one change counts (the last owner, live tokens), the next
//! one sees. Creating is a statement that leaves out what is there, because a violated constraint would end the transaction.

use std::collections::BTreeSet;

use async_trait::async_trait;
use authz::{Channel, Grant, IdentityWrite, Principal, Resource, Space, Tenant, TenantState, TokenRecord, TokenUse};
use domain::{ChannelId, ChannelRef, GrantId, PrincipalId, SpaceId, StoreError, TenantId, Timestamp, TokenId};
use sqlx_core::query::Query;
use sqlx_postgres::PgArguments;

use super::rows::{self, collect};
use crate::codec;
use crate::db::{self, Postgres, Session};
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;
use crate::{inbox, log};

pub(super) const NO_TENANT: &str = "there is no such tenant";
pub(super) const NO_PRINCIPAL: &str = "there is no such principal";

type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// How many rows a statement touched.
async fn execute(tx: &mut WriteTx, statement: Statement<'_>) -> Result<u64, Failure> {
    Ok(statement.execute(tx.connection()).await?.rows_affected())
}

async fn count(tx: &mut WriteTx, statement: Statement<'_>) -> Result<u64, Failure> {
    codec::natural(&statement.fetch_one(tx.connection()).await?, 0)
}

/// What creating says when it left a row out: that it is there, or that what it belongs to is not.
fn left_out(parent_exists: bool, present: &'static str, orphan: &'static str) -> Failure {
    StoreError::Conflict(if parent_exists { present } else { orphan }).into()
}

pub(crate) async fn principal(connection: &mut Session, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, Failure> {
    let statement = db::query(sql!("authz/principal")).bind(tenant.as_str()).bind(id.as_str());
    statement.fetch_optional(connection).await?.as_ref().map(rows::principal).transpose()
}

async fn tenant_exists(tx: &mut WriteTx, tenant: &TenantId) -> Result<bool, Failure> {
    let statement = db::query(sql!("union/tenant")).bind(tenant.as_str());
    Ok(statement.fetch_optional(tx.connection()).await?.is_some())
}

pub(super) async fn space_exists(connection: &mut Session, tenant: &TenantId, space: &str) -> Result<bool, Failure> {
    let statement = db::query(sql!("authz/space")).bind(tenant.as_str()).bind(space);
    Ok(statement.fetch_optional(connection).await?.is_some())
}

pub(crate) async fn channel_exists(connection: &mut Session, tenant: &TenantId, channel: &ChannelRef) -> Result<bool, Failure> {
    let statement = db::query(sql!("authz/channel")).bind(tenant.as_str()).bind(channel.space()).bind(channel.channel());
    Ok(statement.fetch_optional(connection).await?.is_some())
}

/// Those of these channels that exist.
pub(crate) async fn existing_channels(
    connection: &mut Session,
    tenant: &TenantId,
    channels: &BTreeSet<ChannelRef>,
) -> Result<BTreeSet<ChannelRef>, Failure> {
    let spaces: Vec<&str> = channels.iter().map(ChannelRef::space).collect();
    let names: Vec<&str> = channels.iter().map(ChannelRef::channel).collect();
    let found = db::query(sql!("authz/existing_channels")).bind(tenant.as_str()).bind(spaces).bind(names).fetch_all(connection).await?;
    let found =
        found.iter().map(|row| Ok((codec::get(row, 0)?, codec::get(row, 1)?))).collect::<Result<BTreeSet<(&str, &str)>, Failure>>()?;
    Ok(channels.iter().filter(|channel| found.contains(&(channel.space(), channel.channel()))).cloned().collect())
}

/// Those of these names that are enabled agents'.
pub(crate) async fn existing_agents(
    connection: &mut Session,
    tenant: &TenantId,
    agents: &BTreeSet<PrincipalId>,
) -> Result<BTreeSet<PrincipalId>, Failure> {
    let names: Vec<&str> = agents.iter().map(PrincipalId::as_str).collect();
    let found = db::query(sql!("authz/existing_agents")).bind(tenant.as_str()).bind(names).fetch_all(connection).await?;
    found.iter().map(|row| codec::text(row, 0)).collect()
}

async fn create_principal(tx: &mut WriteTx, tenant: &TenantId, principal: &Principal) -> Result<(), Failure> {
    // Work that was on its way to an agent that went meanwhile may have opened an inbox; whoever comes now starts with an empty one.
    inbox::close(tx, tenant, &principal.id).await?;
    let statement = db::query(sql!("authz/create_principal"))
        .bind(tenant.as_str())
        .bind(principal.id.as_str())
        .bind(principal.kind.as_str())
        .bind(principal.role.as_str())
        .bind(principal.display_name.as_deref())
        .bind(principal.enabled)
        .bind(principal.created_at.as_micros());
    match execute(tx, statement).await? {
        0 => Err(left_out(tenant_exists(tx, tenant).await?, "the principal exists", NO_TENANT)),
        _ => Ok(()),
    }
}

async fn create_token(tx: &mut WriteTx, tenant: &TenantId, token: &TokenRecord) -> Result<(), Failure> {
    let scopes = token.scopes.to_words();
    let statement = db::query(sql!("authz/create_token"))
        .bind(tenant.as_str())
        .bind(token.id.uuid())
        .bind(token.principal.as_str())
        .bind(token.hash.0.as_slice())
        .bind(&token.prefix)
        .bind(&scopes)
        .bind(token.created_at.as_micros())
        .bind(token.expires_at.map(Timestamp::as_micros))
        .bind(token.last_used_at.map(Timestamp::as_micros))
        .bind(token.revoked_at.map(Timestamp::as_micros));
    match execute(tx, statement).await? {
        0 => Err(left_out(principal(tx.connection(), tenant, &token.principal).await?.is_some(), "the token exists", NO_PRINCIPAL)),
        _ => Ok(()),
    }
}

/// Notes uses of tokens, all with one statement; a later instant wins.
pub(super) async fn touch_tokens(tx: &mut WriteTx, uses: &[TokenUse]) -> Result<(), Failure> {
    let statement = db::query(sql!("authz/touch_tokens"))
        .bind(uses.iter().map(|used| used.tenant.as_str()).collect::<Vec<_>>())
        .bind(uses.iter().map(|used| used.token.uuid()).collect::<Vec<_>>())
        .bind(uses.iter().map(|used| used.at.as_micros()).collect::<Vec<_>>());
    execute(tx, statement).await.map(|_| ())
}

async fn create_space(tx: &mut WriteTx, tenant: &TenantId, space: &Space) -> Result<(), Failure> {
    let statement = db::query(sql!("authz/create_space"));
    let statement = statement.bind(tenant.as_str()).bind(space.id.as_str()).bind(space.created_at.as_micros());
    match execute(tx, statement).await? {
        0 => Err(left_out(tenant_exists(tx, tenant).await?, "the space exists", NO_TENANT)),
        _ => Ok(()),
    }
}

async fn create_channel(tx: &mut WriteTx, tenant: &TenantId, channel: &Channel) -> Result<bool, Failure> {
    let statement = db::query(sql!("authz/create_channel"))
        .bind(tenant.as_str())
        .bind(channel.space.as_str())
        .bind(channel.id.as_str())
        .bind(channel.created_at.as_micros());
    if execute(tx, statement).await? > 0 {
        return Ok(true);
    }
    if space_exists(tx.connection(), tenant, channel.space.as_str()).await? {
        Err(StoreError::Conflict("the channel exists").into())
    } else {
        Ok(false)
    }
}

/// Deletes the grants that `statement` answers, in the order of their creation.
async fn delete_grants(tx: &mut WriteTx, statement: Statement<'_>) -> Result<Vec<Grant>, Failure> {
    let mut grants = collect(&statement.fetch_all(tx.connection()).await?, rows::grant)?;
    grants.sort_by_key(|grant| grant.id);
    Ok(grants)
}

async fn delete_space(tx: &mut WriteTx, tenant: &TenantId, space: &SpaceId) -> Result<Option<Vec<Grant>>, Failure> {
    let statement = db::query(sql!("authz/delete_space")).bind(tenant.as_str()).bind(space.as_str());
    if execute(tx, statement).await? == 0 {
        return Ok(None);
    }
    let statement = db::query(sql!("authz/delete_grants_on_space")).bind(tenant.as_str()).bind(space.as_str());
    delete_grants(tx, statement).await.map(Some)
}

async fn delete_channel(tx: &mut WriteTx, tenant: &TenantId, space: &SpaceId, channel: &ChannelId) -> Result<Option<Vec<Grant>>, Failure> {
    let statement = db::query(sql!("authz/delete_channel")).bind(tenant.as_str()).bind(space.as_str()).bind(channel.as_str());
    if execute(tx, statement).await? == 0 {
        return Ok(None);
    }
    let resource = ChannelRef::new(space, channel);
    let statement = db::query(sql!("authz/delete_grants_on_channel")).bind(tenant.as_str()).bind(resource.as_str());
    delete_grants(tx, statement).await.map(Some)
}

async fn find_grant(tx: &mut WriteTx, statement: Statement<'_>) -> Result<Option<Grant>, Failure> {
    statement.fetch_optional(tx.connection()).await?.as_ref().map(rows::grant).transpose()
}

async fn create_grant(tx: &mut WriteTx, tenant: &TenantId, grant: &Grant) -> Result<Option<Grant>, Failure> {
    let (of, resource, permission) = (grant.principal.as_str(), grant.resource.to_string(), grant.permission.as_str());
    let same = db::query(sql!("authz/find_grant")).bind(tenant.as_str()).bind(of).bind(&resource).bind(permission);
    if let Some(present) = find_grant(tx, same).await? {
        return Ok(Some(present));
    }
    let statement = db::query(sql!("authz/create_grant"))
        .bind(tenant.as_str())
        .bind(grant.id.uuid())
        .bind(of)
        .bind(&resource)
        .bind(permission)
        .bind(grant.created_at.as_micros());
    match execute(tx, statement).await? {
        0 => Err(left_out(principal(tx.connection(), tenant, &grant.principal).await?.is_some(), "the grant exists", NO_PRINCIPAL)),
        _ => Ok(None),
    }
}

#[async_trait]
impl IdentityWrite for WriteTx {
    async fn principal(&mut self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(principal(self.connection(), tenant, id).await?)
    }

    async fn owners(&mut self, tenant: &TenantId) -> Result<u64, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(count(self, db::query(sql!("authz/owners")).bind(tenant.as_str())).await?)
    }

    async fn create_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        self.lock_administration(&tenant.id).await?;
        let statement = db::query(sql!("authz/create_tenant")).bind(tenant.id.as_str()).bind(tenant.created_at.as_micros());
        if execute(self, statement).await? == 0 {
            return Err(StoreError::Conflict("the tenant exists"));
        }
        Ok(log::create_head(self, tenant).await?)
    }

    async fn set_tenant_state(&mut self, tenant: &TenantId, state: TenantState) -> Result<bool, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(log::set_state(self, tenant, state).await?)
    }

    async fn create_principal(&mut self, tenant: &TenantId, principal: &Principal) -> Result<(), StoreError> {
        self.lock_administration(tenant).await?;
        Ok(create_principal(self, tenant, principal).await?)
    }

    async fn update_principal(&mut self, tenant: &TenantId, principal: &Principal) -> Result<bool, StoreError> {
        self.lock_administration(tenant).await?;
        let statement = db::query(sql!("authz/update_principal"))
            .bind(tenant.as_str())
            .bind(principal.id.as_str())
            .bind(principal.display_name.as_deref())
            .bind(principal.role.as_str())
            .bind(principal.enabled);
        Ok(execute(self, statement).await? > 0)
    }

    async fn delete_principal(&mut self, tenant: &TenantId, id: &PrincipalId) -> Result<bool, StoreError> {
        self.lock_administration(tenant).await?;
        inbox::close(self, tenant, id).await?;
        let statement = db::query(sql!("authz/delete_principal")).bind(tenant.as_str()).bind(id.as_str());
        Ok(execute(self, statement).await? > 0)
    }

    async fn live_tokens(&mut self, tenant: &TenantId, principal: &PrincipalId, now: Timestamp) -> Result<u64, StoreError> {
        self.lock_administration(tenant).await?;
        let statement = db::query(sql!("authz/live_tokens")).bind(tenant.as_str()).bind(principal.as_str()).bind(now.as_micros());
        Ok(count(self, statement).await?)
    }

    async fn create_token(&mut self, tenant: &TenantId, token: &TokenRecord) -> Result<(), StoreError> {
        self.lock_administration(tenant).await?;
        Ok(create_token(self, tenant, token).await?)
    }

    async fn revoke_token(&mut self, tenant: &TenantId, principal: &PrincipalId, id: TokenId, at: Timestamp) -> Result<bool, StoreError> {
        self.lock_administration(tenant).await?;
        let statement =
            db::query(sql!("authz/revoke_token")).bind(tenant.as_str()).bind(principal.as_str()).bind(id.uuid()).bind(at.as_micros());
        Ok(execute(self, statement).await? > 0)
    }

    async fn revoke_tokens(&mut self, tenant: &TenantId, principal: &PrincipalId, at: Timestamp) -> Result<Vec<TokenId>, StoreError> {
        self.lock_administration(tenant).await?;
        let statement = db::query(sql!("authz/revoke_tokens")).bind(tenant.as_str()).bind(principal.as_str()).bind(at.as_micros());
        let revoked = statement.fetch_all(self.connection()).await.map_err(Failure::from)?;
        Ok(collect(&revoked, |row| Ok(TokenId::new(codec::uuid(row, 0)?)))?)
    }

    async fn create_space(&mut self, tenant: &TenantId, space: &Space) -> Result<(), StoreError> {
        self.lock_administration(tenant).await?;
        Ok(create_space(self, tenant, space).await?)
    }

    async fn delete_space(&mut self, tenant: &TenantId, space: &SpaceId) -> Result<Option<Vec<Grant>>, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(delete_space(self, tenant, space).await?)
    }

    async fn create_channel(&mut self, tenant: &TenantId, channel: &Channel) -> Result<bool, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(create_channel(self, tenant, channel).await?)
    }

    async fn delete_channel(&mut self, tenant: &TenantId, space: &SpaceId, channel: &ChannelId) -> Result<Option<Vec<Grant>>, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(delete_channel(self, tenant, space, channel).await?)
    }

    async fn resource_exists(&mut self, tenant: &TenantId, resource: &Resource) -> Result<bool, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(match resource {
            Resource::All => true,
            Resource::Space(space) => space_exists(self.connection(), tenant, space.as_str()).await?,
            Resource::Channel(channel) => channel_exists(self.connection(), tenant, channel).await?,
        })
    }

    async fn create_grant(&mut self, tenant: &TenantId, grant: &Grant) -> Result<Option<Grant>, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(create_grant(self, tenant, grant).await?)
    }

    async fn delete_grant(&mut self, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(find_grant(self, db::query(sql!("authz/delete_grant")).bind(tenant.as_str()).bind(id.uuid())).await?)
    }

    async fn grant(&mut self, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, StoreError> {
        self.lock_administration(tenant).await?;
        Ok(find_grant(self, db::query(sql!("authz/grant")).bind(tenant.as_str()).bind(id.uuid())).await?)
    }
}
