//! `disableCallback`.

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

/// Have a callback not called any more.
///
/// At once: a signal that is on its way is given up. The inbox is polled as before.
#[utoipa::path(
    post, path = "/v1/callback-registrations/{registration}/disable", operation_id = "disableCallback", tag = "hooks",
    params(("registration" = schema::HookId, Path, description = "The registration.")),
    responses((status = 200, description = "The registration as it is now.", body = CallbackRegistration)),
    extensions(
        ("x-action" = json!(Action::CallbackRegister.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn disable_callback(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("registration")?;
    reply::ok(&wire::registration(state.hooks.disable(&caller, HookKind::Callback, id).await?))
}
