//! `heartbeatLeases`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::EventId;
use inbox::{Extended, Heartbeat, Rules};
use protocol::{HeartbeatItem, HeartbeatRequest, HeartbeatResponse, LeaseExtended, Open, ProblemCode};

use super::{asked, wire};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::reply;
use crate::services::ApiState;

/// Extend leases.
///
/// Each is answered for itself: `ok` with its new end, or `lease_lost`: stop working on that item. No lease goes beyond
/// `inbox.attempt_deadline` from its claim, and none becomes shorter.
#[utoipa::path(
    post, path = "/v1/inbox/heartbeat", operation_id = "heartbeatLeases", tag = "inbox",
    request_body(content = HeartbeatRequest, description = "Which leases, and by how long."),
    responses((status = 200, description = "One entry per lease, in the order of the request.", body = HeartbeatResponse)),
    extensions(
        ("x-action" = json!(Action::InboxHeartbeat.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn heartbeat_leases(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: HeartbeatRequest = asked::body(request, &state).await?;
    asked::own(&caller, asked.tenant_id.as_ref(), asked.recipient_id.as_ref())?;
    let rules = &state.inbox.settings().rules;
    let events: Vec<_> = asked.leases.iter().map(|lease| lease.event_id).collect();
    let beats = asked.leases.into_iter().enumerate().map(|(index, lease)| heartbeat(index, lease, rules)).collect::<Result<_, _>>()?;
    let outcomes = state.inbox.heartbeat(&caller, asked.session_id.as_ref(), beats).await?;
    let leases = events.into_iter().zip(&outcomes).map(|(event, outcome)| extended(event, outcome)).collect();
    reply::ok(&HeartbeatResponse { leases })
}

fn heartbeat(index: usize, lease: HeartbeatItem, rules: &Rules) -> Result<Heartbeat, Refusal> {
    let extend = asked::lease(lease.extend_by_seconds, rules, || format!("/leases/{index}/extend_by_seconds"))?;
    Ok(Heartbeat { event: lease.event_id, token: lease.lease_token.into_exposed(), extend })
}

fn extended(event_id: EventId, outcome: &inbox::ItemOutcome<Extended>) -> LeaseExtended {
    let (outcome, extended) = wire::outcome(outcome);
    LeaseExtended {
        event_id,
        outcome: Open::Known(outcome),
        visibility_lease_until_utc: extended.map(|extended| extended.until),
        lease_expires_in_ms: extended.map(|extended| u64::try_from(extended.expires_in.as_millis()).unwrap_or(u64::MAX)),
        attempt_deadline_utc: extended.map(|extended| extended.attempt_deadline),
    }
}
