//! `getInboxPolicy`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::PrincipalId;
use protocol::{InboxPolicy, ProblemCode, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// What holds for the inbox of an agent.
///
/// For operators, and for the agent itself.
#[utoipa::path(
    get, path = "/v1/agents/{agent}/inbox-policy", operation_id = "getInboxPolicy", tag = "inbox",
    params(("agent" = schema::PrincipalId, Path, description = "The agent.")),
    responses((status = 200, description = "The policy.", body = InboxPolicy)),
    extensions(("x-action" = json!(Action::InboxRead.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn get_inbox_policy(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let agent: PrincipalId = names.name("agent")?;
    reply::ok(&wire::policy(state.inbox.state(&caller, Some(&agent)).await?.policy))
}
