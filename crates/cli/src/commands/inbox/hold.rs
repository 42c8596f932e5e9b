//! Claiming items by hand, and what a holder of a lease does.

use std::time::Duration;

use client::{Client, fresh_idempotency_key};
use protocol::{
    AckItem, AckResult, ClaimNextRequest, ClaimRequest, HeartbeatItem, HeartbeatRequest, ItemClaim, ItemOutcome, Label, ReleaseRequest,
    Seconds, Secret,
};
use serde_json::value::RawValue;

use super::super::{cell, when};
use super::{ClaimArguments, LeaseArguments, look, not_done};
use crate::failure::Failure;
use crate::session::Session;

pub(super) async fn claim(client: &Client, arguments: ClaimArguments, session: &Session) -> Result<(), Failure> {
    let client = client.with_idempotency_key(&fresh_idempotency_key());
    let lease_seconds = arguments.lease.map(Seconds::of);
    let claims = if arguments.events.is_empty() {
        let request = ClaimNextRequest {
            queues: (!arguments.queues.is_empty()).then_some(arguments.queues),
            limit: Some(arguments.limit),
            lease_seconds,
            wait_seconds: arguments.wait.map(Seconds::of),
            ..ClaimNextRequest::default()
        };
        client.claim_next(&request).await?.claims
    } else {
        let request = ClaimRequest { tenant_id: None, recipient_id: None, session_id: None, event_ids: arguments.events, lease_seconds };
        client.claim_items(&request).await?.claims
    };
    for (index, claim) in claims.iter().enumerate() {
        if index > 0 && !session.options.json {
            session.line("")?;
        }
        show(claim, session)?;
    }
    // All are printed before anything is complained about: whoever holds a lease has to know its token.
    match claims.iter().find(|claim| claim.outcome.known() != Some(ItemOutcome::Ok)) {
        Some(refused) => Err(not_done(refused.event_id, &refused.outcome)),
        None if claims.is_empty() => Err(Failure::NothingToDo),
        None => Ok(()),
    }
}

fn show(claim: &ItemClaim, session: &Session) -> Result<(), Failure> {
    let members = [
        ("event", claim.event_id.to_string()),
        ("outcome", claim.outcome.to_string()),
        ("lease token", claim.lease_token.as_ref().map(|token| token.expose().to_owned()).unwrap_or_default()),
        ("leased until", claim.visibility_lease_until_utc.map(when).unwrap_or_default()),
        ("deadline", claim.attempt_deadline_utc.map(when).unwrap_or_default()),
        ("type", cell(claim.event_type.as_ref())),
        ("queue", cell(claim.queue.as_ref())),
        ("priority", cell(claim.priority.as_ref())),
        ("attempt", cell(claim.delivery_attempts.as_ref())),
        ("summary", cell(claim.summary.as_ref())),
        ("payload", claim.payload.as_ref().map(|payload| payload.get().to_owned()).unwrap_or_default()),
    ];
    session.item(claim, &members)
}

pub(super) async fn heartbeat(client: &Client, held: LeaseArguments, lease: Option<Duration>, session: &Session) -> Result<(), Failure> {
    let lease = HeartbeatItem { event_id: held.event, lease_token: held.lease_token, extend_by_seconds: lease.map(Seconds::of) };
    let request = HeartbeatRequest { tenant_id: None, recipient_id: None, session_id: None, leases: vec![lease] };
    let leases = client.heartbeat(&request).await?.leases;
    let Some(extended) = leases.first() else { return Err(not_done(held.event, &"no answer")) };
    if extended.outcome.known() != Some(ItemOutcome::Ok) {
        return Err(not_done(held.event, &extended.outcome));
    }
    let members = [
        ("event", extended.event_id.to_string()),
        ("leased until", extended.visibility_lease_until_utc.map(when).unwrap_or_default()),
        ("deadline", extended.attempt_deadline_utc.map(when).unwrap_or_default()),
    ];
    session.item(extended, &members)
}

pub(super) async fn acknowledge(
    client: &Client,
    held: LeaseArguments,
    result: AckResult,
    summary: Option<String>,
    output: Option<String>,
    session: &Session,
) -> Result<(), Failure> {
    let output = output.map(RawValue::from_string).transpose().map_err(|error| Failure::Usage(format!("--output is not JSON: {error}")))?;
    let LeaseArguments { event, lease_token } = held;
    let done = client.acknowledge_item(AckItem { event_id: event, lease_token, result, summary, output }).await?;
    if done.outcome.known() != Some(ItemOutcome::Ok) {
        return Err(not_done(event, &done.outcome));
    }
    let members = [
        ("event", done.event_id.to_string()),
        ("state", cell(done.ack_state.as_ref())),
        ("next retry", done.next_retry_at_utc.map(when).unwrap_or_default()),
    ];
    session.item(&done, &members)
}

pub(super) async fn release(
    client: &Client,
    held: LeaseArguments,
    reason: Option<Label>,
    after: Option<Duration>,
    session: &Session,
) -> Result<(), Failure> {
    let LeaseArguments { event, lease_token } = held;
    let item = client.release(&request(event, lease_token, reason, after)).await?;
    look::shown(&item, session)
}

fn request(event_id: client::EventId, lease_token: Secret, reason: Option<Label>, after: Option<Duration>) -> ReleaseRequest {
    let retry_after_seconds = after.map(Seconds::of);
    ReleaseRequest { tenant_id: None, recipient_id: None, session_id: None, event_id, lease_token, reason, retry_after_seconds }
}
