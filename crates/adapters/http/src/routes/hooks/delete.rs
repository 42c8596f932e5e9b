//! `deleteNotifyHook`.

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

/// Remove a notify hook.
///
/// With its secrets, its log, and the rings that are on their way.
#[utoipa::path(
    delete, path = "/v1/notify-hooks/{hook}", operation_id = "deleteNotifyHook", tag = "hooks",
    params(("hook" = schema::HookId, Path, description = "The hook.")),
    responses((status = 204, description = "It is gone.")),
    extensions(
        ("x-action" = json!(Action::HooksManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn delete_notify_hook(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("hook")?;
    state.hooks.delete(&caller, HookKind::Notify, id).await?;
    Ok(reply::no_content())
}
