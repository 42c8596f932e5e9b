//! `setInboxPolicy`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::PrincipalId;
use protocol::{InboxPolicy, ProblemCode, schema};

use super::{asked, wire};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames};
use crate::routes::reply;
use crate::services::ApiState;

/// Decide what holds for the inbox of an agent.
///
/// Replaces the policy: what is absent has its default. Leases that are open stay. Audited.
#[utoipa::path(
    put, path = "/v1/agents/{agent}/inbox-policy", operation_id = "setInboxPolicy", tag = "inbox",
    params(("agent" = schema::PrincipalId, Path, description = "The agent.")),
    request_body(content = InboxPolicy, description = "The policy."),
    responses((status = 200, description = "The policy as it is now.", body = InboxPolicy)),
    extensions(("x-action" = json!(Action::InboxManage.name())), ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())))
)]
pub(crate) async fn set_inbox_policy(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    let agent: PrincipalId = names.name("agent")?;
    let asked: InboxPolicy = asked::body(request, &state).await?;
    let shown = state.inbox.set_policy(&caller, &agent, wire::policy_of(asked)).await?;
    reply::ok(&wire::policy(shown.policy))
}
