//! `getCallback`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use hooks::{HookId, HookKind};
use protocol::{CallbackRegistration, ProblemCode, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// One callback, with its health.
#[utoipa::path(
    get, path = "/v1/callback-registrations/{registration}", operation_id = "getCallback", tag = "hooks",
    params(("registration" = schema::HookId, Path, description = "The registration.")),
    responses((status = 200, description = "It.", body = CallbackRegistration)),
    extensions(("x-action" = json!(Action::CallbackRegister.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn get_callback(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("registration")?;
    reply::ok(&wire::registration(state.hooks.get(&caller, HookKind::Callback, id).await?))
}
