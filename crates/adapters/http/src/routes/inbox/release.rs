//! `releaseItem`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use inbox::GiveBack;
use protocol::{InboxItem, ProblemCode, ReleaseRequest};

use super::{asked, wire};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::reply;
use crate::services::ApiState;

/// The reason of a release that names none.
const REASON: &str = "released";

/// Give back what was claimed.
///
/// It is claimable again at once, or after `retry_after_seconds`. A release counts as an attempt, unless its reason is `snooze`.
#[utoipa::path(
    post, path = "/v1/inbox/release", operation_id = "releaseItem", tag = "inbox",
    request_body(content = ReleaseRequest, description = "Which item, why, and for how long it rests."),
    responses((status = 200, description = "The item as it stands now.", body = InboxItem)),
    extensions(
        ("x-action" = json!(Action::InboxRelease.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::LeaseLost].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn release_item(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: ReleaseRequest = asked::body(request, &state).await?;
    asked::own(&caller, asked.tenant_id.as_ref(), asked.recipient_id.as_ref())?;
    let release = GiveBack {
        event: asked.event_id,
        token: asked.lease_token.into_exposed(),
        reason: asked.reason.map_or_else(|| REASON.to_owned(), |reason| reason.as_str().to_owned()),
        rest: asked.retry_after_seconds.map(|rest| rest.duration().min(state.inbox.settings().rules.retry_cap)),
        session: asked.session_id,
    };
    let item = state.inbox.release(&caller, release).await?;
    reply::ok(&wire::item(item, &caller, &caller.principal))
}
