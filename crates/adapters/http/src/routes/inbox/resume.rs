//! `resumeInbox`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use protocol::{InboxState, PauseRequest, ProblemCode};

use super::{asked, wire};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::reply;
use crate::services::ApiState;

/// End a pause.
///
/// What waits is claimable again, and its agent is rung. Audited.
#[utoipa::path(
    post, path = "/v1/inbox/resume", operation_id = "resumeInbox", tag = "inbox",
    request_body(content = PauseRequest, description = "Whose inbox, and which queue."),
    responses((status = 200, description = "The inbox as it stands now.", body = InboxState)),
    extensions(
        ("x-action" = json!(Action::InboxManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::LimitReached].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn resume_inbox(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: PauseRequest = asked::body(request, &state).await?;
    asked::own_tenant(&caller, asked.tenant_id.as_ref())?;
    let shown = state.inbox.resume(&caller, &asked.recipient_id, asked.queue).await?;
    reply::ok(&wire::state(shown, &caller))
}
