//! What requests about inboxes have in common: their body, whose inbox they mean, for how long.

use std::time::Duration;

use authz::Caller;
use axum::extract::Request;
use axum::http::request::Parts;
use bytes::Bytes;
use domain::{AgentSessionId, PrincipalId, TenantId};
use inbox::{ClaimKey, Rules};
use protocol::Seconds;
use serde::de::DeserializeOwned;

use crate::refusal::{Refusal, not_found};
use crate::request::{Query, parse_json_of};
use crate::routes::creating::{hash, key_of};
use crate::services::ApiState;

/// Reads a body of at most `http.max_inbox_bytes`; the request has no parameters.
pub(super) async fn body<T: DeserializeOwned>(request: Request, state: &ApiState) -> Result<T, Refusal> {
    Ok(body_of(request, state).await?.0)
}

/// The same, with the request's head and the body's text.
pub(super) async fn body_of<T: DeserializeOwned>(request: Request, state: &ApiState) -> Result<(T, Parts, Bytes), Refusal> {
    Query::none(request.uri())?;
    let (parts, body) = request.into_parts();
    let settings = &state.settings;
    let (read, bytes) = parse_json_of(&parts.headers, body, settings.max_inbox_bytes, settings.request_timeout).await?;
    Ok((read, parts, bytes))
}

/// Refuses a tenant or an agent that is not the token's own: as if it were not there.
pub(in crate::routes) fn own(caller: &Caller, tenant: Option<&TenantId>, agent: Option<&PrincipalId>) -> Result<(), Refusal> {
    let matches = tenant.is_none_or(|tenant| *tenant == caller.tenant) && agent.is_none_or(|agent| *agent == caller.principal);
    if matches { Ok(()) } else { Err(not_found()) }
}

/// Refuses a tenant that is not the token's own. The recipient is the operator's choice.
pub(super) fn own_tenant(caller: &Caller, tenant: Option<&TenantId>) -> Result<(), Refusal> {
    own(caller, tenant, None)
}

/// A lease or an extension: at least `inbox.lease_min`; who asks for more than there is gets what there is.
pub(super) fn lease(wanted: Option<Seconds>, rules: &Rules, pointer: impl FnOnce() -> String) -> Result<Option<Duration>, Refusal> {
    let Some(wanted) = wanted.map(Seconds::duration) else { return Ok(None) };
    if wanted < rules.lease_min {
        return Err(Refusal::invalid(pointer(), format!("at least {} seconds (inbox.lease_min)", rules.lease_min.as_secs_f64())));
    }
    Ok(Some(wanted.min(rules.lease_max)))
}

/// What an `Idempotency-Key` makes of a claim.
pub(super) fn claim_key(parts: &Parts, body: &[u8]) -> Result<Option<ClaimKey>, Refusal> {
    let key = key_of(&parts.headers)?;
    Ok(key.map(|key| ClaimKey {
        key: key.as_str().to_owned(),
        request_hash: hash(&[parts.method.as_str().as_bytes(), parts.uri.path().as_bytes(), body]),
    }))
}

/// `session_id` of a query.
pub(super) fn session(query: &mut Query<'_>) -> Result<Option<AgentSessionId>, Refusal> {
    query.parsed("session_id", AgentSessionId::EXPECTATION)
}

/// `recipient_id` and `tenant_id` of a query: whose inbox to look at; the caller's own by default.
pub(super) fn recipient(query: &mut Query<'_>, caller: &Caller) -> Result<Option<PrincipalId>, Refusal> {
    let tenant = query.parsed::<TenantId>("tenant_id", TenantId::EXPECTATION)?;
    let recipient = query.parsed("recipient_id", PrincipalId::EXPECTATION)?;
    own_tenant(caller, tenant.as_ref())?;
    Ok(recipient)
}
