//! `claimNext`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use inbox::ClaimNext;
use protocol::{ClaimNextRequest, ClaimNextResponse, ProblemCode, Seconds};

use super::poll::limit;
use super::unread::Holder;
use super::{asked, claims};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::services::ApiState;

/// Claim what comes next.
///
/// The most urgent first, and what waits long comes before what is newer, whatever its priority. With `wait_seconds` the answer waits until
/// there is an item. At most `inbox.claim_max_bytes` of payloads in one answer, one always. Claims of a client that is gone before the answer
/// was written are given back, and do not count as attempts.
#[utoipa::path(
    post, path = "/v1/inbox/claim-next", operation_id = "claimNext", tag = "inbox",
    params((
        "idempotency-key" = Option<String>, Header,
        description = "A repeat under the same key is answered with the claims that are still held; it claims afresh if none is left."
    )),
    request_body(content = ClaimNextRequest, description = "From which queues, how many, for how long."),
    responses((status = 200, description = "What was claimed, possibly nothing.", body = ClaimNextResponse)),
    extensions(
        ("x-action" = json!(Action::InboxClaim.name())),
        ("x-problem-codes" = json!([
            [ProblemCode::NotFound, ProblemCode::StateConflict, ProblemCode::IdempotencyConflict].as_slice(), &WRITING
        ].concat())),
    )
)]
pub(crate) async fn claim_next(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let (asked, parts, text) = asked::body_of::<ClaimNextRequest>(request, &state).await?;
    asked::own(&caller, asked.tenant_id.as_ref(), asked.recipient_id.as_ref())?;
    let claim = ClaimNext {
        lease: asked::lease(asked.lease_seconds, &state.inbox.settings().rules, || "/lease_seconds".to_owned())?,
        key: asked::claim_key(&parts, &text)?,
        queues: asked.queues,
        limit: asked.limit.map_or(1, limit),
        wait: asked.wait_seconds.map(Seconds::duration).unwrap_or_default(),
        session: asked.session_id,
    };
    let answer = state.inbox.claim_next(&caller, claim).await?;
    Ok(claims::next(answer, Holder::new(&state, caller)).into_response())
}
