//! `setPresence`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::PrincipalId;
use protocol::{InboxState, PresenceRequest, ProblemCode, schema};

use super::asked;
use super::set_own_presence::set;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames};
use crate::services::ApiState;

/// Say for an agent whether it is to be rung.
///
/// For operators, and for the agent itself.
#[utoipa::path(
    put, path = "/v1/agents/{agent}/presence", operation_id = "setPresence", tag = "inbox",
    params(("agent" = schema::PrincipalId, Path, description = "The agent.")),
    request_body(content = PresenceRequest, description = "In or out."),
    responses((status = 200, description = "The inbox as it stands now.", body = InboxState)),
    extensions(("x-action" = json!(Action::PresenceSet.name())), ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())))
)]
pub(crate) async fn set_presence(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    let agent: PrincipalId = names.name("agent")?;
    let asked: PresenceRequest = asked::body(request, &state).await?;
    set(&state, &caller, &agent, asked).await
}
