//! Changes of identities, as part of a transaction.

use authz::{Channel, Grant, Principal, Resource, Space, Tenant, TenantState, TokenRecord};
use domain::{ChannelId, ChannelRef, GrantId, PrincipalId, SpaceId, StoreError, TenantId, Timestamp, TokenId};
use rusqlite::{Connection, Params, params};

use super::rows::{self, collect, first};
use crate::codec::{self, check_tenant_number};
use crate::failure::Failure;
use crate::inbox;
use crate::sql::sql;
use crate::tx::WriteTx;

/// What creating says of a row that is there, or whose parent is not.
fn created(outcome: Result<usize, Failure>, present: &'static str, orphan: &'static str) -> Result<(), Failure> {
    match outcome {
        Ok(_) => Ok(()),
        Err(failure) if failure.is_unique() => Err(StoreError::Conflict(present).into()),
        Err(failure) if failure.is_foreign_key() => Err(StoreError::Conflict(orphan).into()),
        Err(failure) => Err(failure),
    }
}

fn execute(tx: &WriteTx, statement: &str, values: impl Params) -> Result<usize, Failure> {
    Ok(tx.prepare(statement)?.execute(values)?)
}

fn count(tx: &WriteTx, statement: &str, values: impl Params) -> Result<u64, Failure> {
    let count: i64 = tx.prepare(statement)?.query_row(values, |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

const NO_TENANT: &str = "there is no such tenant";
const NO_PRINCIPAL: &str = "there is no such principal";

pub(crate) fn principal(connection: &Connection, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, Failure> {
    let mut statement = connection.prepare_cached(sql!("authz/principal"))?;
    first(statement.query([tenant.as_str(), id.as_str()])?, rows::principal)
}

pub(crate) fn owners(tx: &WriteTx, tenant: &TenantId) -> Result<u64, Failure> {
    count(tx, sql!("authz/owners"), [tenant.as_str()])
}

pub(crate) fn create_tenant(tx: &mut WriteTx, tenant: &Tenant) -> Result<(), Failure> {
    let at = tenant.created_at.as_micros();
    let inserted = execute(tx, sql!("authz/create_tenant"), params![tenant.id.as_str(), at]);
    created(inserted, "the tenant exists", NO_TENANT)?;
    let values = params![tenant.id.as_str(), tenant.state.as_str(), at, tenant.epoch.uuid().into_bytes()];
    let number: i64 = tx.prepare(sql!("sync/create_head"))?.query_row(values, |row| row.get(0))?;
    check_tenant_number(number)?;
    Ok(())
}

pub(crate) fn set_tenant_state(tx: &mut WriteTx, tenant: &TenantId, state: TenantState) -> Result<bool, Failure> {
    if execute(tx, sql!("sync/set_state"), params![tenant.as_str(), state.as_str()])? == 0 {
        return Ok(false);
    }
    tx.log_head(tenant)?;
    let (_, heads) = tx.parts();
    heads.change(tenant, |head| head.state = state);
    Ok(true)
}

pub(crate) fn create_principal(tx: &mut WriteTx, tenant: &TenantId, principal: &Principal) -> Result<(), Failure> {
    // Work that was on its way to an agent that went meanwhile may have opened an inbox; whoever comes now starts with an empty one.
    inbox::close(tx, tenant, &principal.id)?;
    let values = params![
        tenant.as_str(),
        principal.id.as_str(),
        principal.kind.as_str(),
        principal.role.as_str(),
        principal.display_name,
        principal.enabled,
        principal.created_at.as_micros(),
    ];
    created(execute(tx, sql!("authz/create_principal"), values), "the principal exists", NO_TENANT)
}

pub(crate) fn update_principal(tx: &WriteTx, tenant: &TenantId, principal: &Principal) -> Result<bool, Failure> {
    let values = params![tenant.as_str(), principal.id.as_str(), principal.display_name, principal.role.as_str(), principal.enabled];
    Ok(execute(tx, sql!("authz/update_principal"), values)? > 0)
}

pub(crate) fn delete_principal(tx: &mut WriteTx, tenant: &TenantId, id: &PrincipalId) -> Result<bool, Failure> {
    inbox::close(tx, tenant, id)?;
    Ok(execute(tx, sql!("authz/delete_principal"), [tenant.as_str(), id.as_str()])? > 0)
}

pub(crate) fn live_tokens(tx: &WriteTx, tenant: &TenantId, principal: &PrincipalId, now: Timestamp) -> Result<u64, Failure> {
    count(tx, sql!("authz/live_tokens"), params![tenant.as_str(), principal.as_str(), now.as_micros()])
}

pub(crate) fn create_token(tx: &WriteTx, tenant: &TenantId, token: &TokenRecord) -> Result<(), Failure> {
    let values = params![
        tenant.as_str(),
        token.id.uuid().into_bytes(),
        token.principal.as_str(),
        token.hash.0,
        token.prefix,
        token.scopes.to_words(),
        token.created_at.as_micros(),
        token.expires_at.map(Timestamp::as_micros),
        token.last_used_at.map(Timestamp::as_micros),
        token.revoked_at.map(Timestamp::as_micros),
    ];
    created(execute(tx, sql!("authz/create_token"), values), "the token exists", NO_PRINCIPAL)
}

pub(crate) fn revoke_token(tx: &WriteTx, tenant: &TenantId, principal: &PrincipalId, id: TokenId, at: Timestamp) -> Result<bool, Failure> {
    let values = params![tenant.as_str(), principal.as_str(), id.uuid().into_bytes(), at.as_micros()];
    Ok(execute(tx, sql!("authz/revoke_token"), values)? > 0)
}

pub(crate) fn revoke_tokens(tx: &WriteTx, tenant: &TenantId, principal: &PrincipalId, at: Timestamp) -> Result<Vec<TokenId>, Failure> {
    let values = params![tenant.as_str(), principal.as_str(), at.as_micros()];
    collect(tx.prepare(sql!("authz/revoke_tokens"))?.query(values)?, |row| Ok(TokenId::new(codec::uuid(row, 0)?)))
}

pub(crate) fn touch_token(tx: &WriteTx, tenant: &TenantId, id: TokenId, at: Timestamp) -> Result<(), Failure> {
    execute(tx, sql!("authz/touch_token"), params![tenant.as_str(), id.uuid().into_bytes(), at.as_micros()])?;
    Ok(())
}

pub(crate) fn create_space(tx: &WriteTx, tenant: &TenantId, space: &Space) -> Result<(), Failure> {
    let values = params![tenant.as_str(), space.id.as_str(), space.created_at.as_micros()];
    created(execute(tx, sql!("authz/create_space"), values), "the space exists", NO_TENANT)
}

pub(crate) fn delete_space(tx: &WriteTx, tenant: &TenantId, space: &SpaceId) -> Result<Option<Vec<Grant>>, Failure> {
    if execute(tx, sql!("authz/delete_space"), [tenant.as_str(), space.as_str()])? == 0 {
        return Ok(None);
    }
    delete_grants(tx, sql!("authz/delete_grants_on_space"), tenant, space.as_str()).map(Some)
}

pub(crate) fn create_channel(tx: &WriteTx, tenant: &TenantId, channel: &Channel) -> Result<bool, Failure> {
    let values = params![tenant.as_str(), channel.space.as_str(), channel.id.as_str(), channel.created_at.as_micros()];
    match execute(tx, sql!("authz/create_channel"), values) {
        Err(failure) if failure.is_foreign_key() => Ok(false),
        outcome => created(outcome, "the channel exists", NO_TENANT).map(|()| true),
    }
}

pub(crate) fn delete_channel(tx: &WriteTx, tenant: &TenantId, space: &SpaceId, channel: &ChannelId) -> Result<Option<Vec<Grant>>, Failure> {
    if execute(tx, sql!("authz/delete_channel"), [tenant.as_str(), space.as_str(), channel.as_str()])? == 0 {
        return Ok(None);
    }
    delete_grants(tx, sql!("authz/delete_grants_on_channel"), tenant, ChannelRef::new(space, channel).as_str()).map(Some)
}

fn delete_grants(tx: &WriteTx, statement: &str, tenant: &TenantId, resource: &str) -> Result<Vec<Grant>, Failure> {
    let mut statement = tx.prepare(statement)?;
    let mut grants = collect(statement.query([tenant.as_str(), resource])?, rows::grant)?;
    grants.sort_by_key(|grant| grant.id);
    Ok(grants)
}

pub(crate) fn space_exists(connection: &Connection, tenant: &TenantId, space: &str) -> Result<bool, Failure> {
    Ok(connection.prepare_cached(sql!("authz/space"))?.exists([tenant.as_str(), space])?)
}

pub(crate) fn channel_exists(connection: &Connection, tenant: &TenantId, channel: &ChannelRef) -> Result<bool, Failure> {
    let values = [tenant.as_str(), channel.space(), channel.channel()];
    Ok(connection.prepare_cached(sql!("authz/channel"))?.exists(values)?)
}

pub(crate) fn resource_exists(tx: &WriteTx, tenant: &TenantId, resource: &Resource) -> Result<bool, Failure> {
    match resource {
        Resource::All => Ok(true),
        Resource::Space(space) => space_exists(tx.connection(), tenant, space.as_str()),
        Resource::Channel(channel) => channel_exists(tx.connection(), tenant, channel),
    }
}

pub(crate) fn create_grant(tx: &WriteTx, tenant: &TenantId, grant: &Grant) -> Result<Option<Grant>, Failure> {
    let resource = grant.resource.to_string();
    let present = {
        let mut statement = tx.prepare(sql!("authz/find_grant"))?;
        let values = [tenant.as_str(), grant.principal.as_str(), resource.as_str(), grant.permission.as_str()];
        first(statement.query(values)?, rows::grant)?
    };
    if present.is_some() {
        return Ok(present);
    }
    let values = params![
        tenant.as_str(),
        grant.id.uuid().into_bytes(),
        grant.principal.as_str(),
        resource,
        grant.permission.as_str(),
        grant.created_at.as_micros(),
    ];
    created(execute(tx, sql!("authz/create_grant"), values), "the grant exists", NO_PRINCIPAL)?;
    Ok(None)
}

pub(crate) fn delete_grant(tx: &WriteTx, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, Failure> {
    let mut statement = tx.prepare(sql!("authz/delete_grant"))?;
    let deleted = collect(statement.query(params![tenant.as_str(), id.uuid().into_bytes()])?, rows::grant)?;
    Ok(deleted.into_iter().next())
}

pub(crate) fn grant(tx: &WriteTx, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, Failure> {
    let mut statement = tx.prepare(sql!("authz/grant"))?;
    first(statement.query(params![tenant.as_str(), id.uuid().into_bytes()])?, rows::grant)
}

/// The limit of a listing as a parameter.
pub(crate) fn limit(limit: usize) -> i64 {
    codec::from_count(limit)
}
