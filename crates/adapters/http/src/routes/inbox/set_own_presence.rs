//! `setOwnPresence`.

use authz::{Action, Caller};
use axum::extract::{Request, State};
use axum::response::Response;
use domain::PrincipalId;
use inbox::PresenceChange;
use protocol::{InboxState, PresenceRequest, PresenceState, ProblemCode, Seconds};

use super::{asked, wire};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::reply;
use crate::services::ApiState;

/// Say whether to be rung.
///
/// While an agent is out, connected bells and hooks stay silent; its inbox fills, and it can claim as ever. On its return it is rung once per
/// queue that has something.
#[utoipa::path(
    put, path = "/v1/agents/me/presence", operation_id = "setOwnPresence", tag = "inbox",
    request_body(content = PresenceRequest, description = "In or out."),
    responses((status = 200, description = "The inbox as it stands now.", body = InboxState)),
    extensions(("x-action" = json!(Action::PresenceSet.name())), ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())))
)]
pub(crate) async fn set_own_presence(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: PresenceRequest = asked::body(request, &state).await?;
    set(&state, &caller, &caller.principal, asked).await
}

/// Sets the presence of an agent.
pub(super) async fn set(state: &ApiState, caller: &Caller, agent: &PrincipalId, asked: PresenceRequest) -> Result<Response, Refusal> {
    let change = match (asked.state, asked.for_seconds) {
        (PresenceState::In, None) => PresenceChange::In,
        (PresenceState::Out, for_seconds) => PresenceChange::Out { for_: for_seconds.map(Seconds::duration) },
        (PresenceState::In, Some(_)) => return Err(Refusal::invalid("/for_seconds", "only an absence ends by itself")),
    };
    let shown = state.inbox.set_presence(caller, agent, change).await?;
    reply::ok(&wire::state(shown, caller))
}
