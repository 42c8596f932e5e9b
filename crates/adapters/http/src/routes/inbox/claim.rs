//! `claimItems`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use inbox::Claim;
use protocol::{ClaimRequest, ClaimResponse, ProblemCode};

use super::unread::Holder;
use super::{asked, claims};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::services::ApiState;

/// Claim items by name.
///
/// Each is answered for itself: `ok` with the lease and the payload, or why not. Work under the lease, extend it by heartbeats, acknowledge with its
/// token. Claims of a client that is gone before the answer was written are given back, and do not count as attempts.
#[utoipa::path(
    post, path = "/v1/inbox/claim", operation_id = "claimItems", tag = "inbox",
    params(("idempotency-key" = Option<String>, Header, description = "A repeat under the same key is answered with the claims that are still held.")),
    request_body(content = ClaimRequest, description = "Which items, and for how long."),
    responses((status = 200, description = "One entry per item, in the order of the request.", body = ClaimResponse)),
    extensions(
        ("x-action" = json!(Action::InboxClaim.name())),
        ("x-problem-codes" = json!([
            [ProblemCode::NotFound, ProblemCode::StateConflict, ProblemCode::IdempotencyConflict].as_slice(), &WRITING
        ].concat())),
    )
)]
pub(crate) async fn claim_items(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let (asked, parts, text) = asked::body_of::<ClaimRequest>(request, &state).await?;
    asked::own(&caller, asked.tenant_id.as_ref(), asked.recipient_id.as_ref())?;
    let claim = Claim {
        lease: asked::lease(asked.lease_seconds, &state.inbox.settings().rules, || "/lease_seconds".to_owned())?,
        key: asked::claim_key(&parts, &text)?,
        events: asked.event_ids,
        session: asked.session_id,
    };
    let outcomes = state.inbox.claim(&caller, claim).await?;
    Ok(claims::claims(outcomes, Holder::new(&state, caller)).into_response())
}
