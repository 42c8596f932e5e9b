//! `deleteCallback`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use hooks::{HookId, HookKind};
use protocol::{ProblemCode, schema};

use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Remove a callback.
///
/// With its keys. Nothing of the inbox changes: it is polled as before.
#[utoipa::path(
    delete, path = "/v1/callback-registrations/{registration}", operation_id = "deleteCallback", tag = "hooks",
    params(("registration" = schema::HookId, Path, description = "The registration.")),
    responses((status = 204, description = "It is gone.")),
    extensions(
        ("x-action" = json!(Action::CallbackRegister.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn delete_callback(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("registration")?;
    state.hooks.delete(&caller, HookKind::Callback, id).await?;
    Ok(reply::no_content())
}
