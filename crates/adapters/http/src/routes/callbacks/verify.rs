//! `verifyCallback`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use hooks::HookId;
use protocol::{CallbackRegistration, CallbackVerify, ProblemCode, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query, parse_json};
use crate::routes::reply;
use crate::services::ApiState;

/// Verify a callback that is pending.
///
/// `{}` sends a new challenge now and looks at what the receiver answers; with a `response` the open challenge is answered here. One that is
/// active stays as it is.
#[utoipa::path(
    post, path = "/v1/callback-registrations/{registration}/verify", operation_id = "verifyCallback", tag = "hooks",
    params(("registration" = schema::HookId, Path, description = "The registration.")),
    request_body(content = CallbackVerify, description = "Nothing, or the answer."),
    responses((status = 200, description = "The registration as it is now: active.", body = CallbackRegistration)),
    extensions(
        ("x-action" = json!(Action::CallbackRegister.name())),
        ("x-problem-codes" = json!([
            [
                ProblemCode::NotFound, ProblemCode::UrlRefused, ProblemCode::StateConflict, ProblemCode::RateLimited,
                ProblemCode::SecretsUnavailable,
            ].as_slice(),
            &WRITING,
        ].concat())),
    )
)]
pub(crate) async fn verify_callback(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    Query::none(request.uri())?;
    let id: HookId = names.name("registration")?;
    let (parts, body) = request.into_parts();
    let (asked, _) = parse_json::<CallbackVerify>(&parts.headers, body, &state.settings).await?;
    let hook = state.hooks.verify_callback(&caller, id, asked.response.as_deref()).await?;
    reply::ok(&wire::registration(hook))
}
