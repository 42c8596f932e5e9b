//! `enableCallback`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use hooks::{HookId, HookKind};
use protocol::{CallbackRegistration, ProblemCode, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Have a callback called again.
///
/// Its failures are forgotten, and it is called for what waits already. One whose receiver has not answered a challenge is sent another.
#[utoipa::path(
    post, path = "/v1/callback-registrations/{registration}/enable", operation_id = "enableCallback", tag = "hooks",
    params(("registration" = schema::HookId, Path, description = "The registration.")),
    responses((status = 200, description = "The registration as it is now.", body = CallbackRegistration)),
    extensions(
        ("x-action" = json!(Action::CallbackRegister.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::UrlRefused].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn enable_callback(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("registration")?;
    reply::ok(&wire::registration(state.hooks.enable(&caller, HookKind::Callback, id).await?))
}
