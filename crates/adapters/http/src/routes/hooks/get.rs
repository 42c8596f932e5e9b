//! `getNotifyHook`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use hooks::{HookId, HookKind};
use protocol::{NotifyHook, ProblemCode, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// One notify hook, with its health.
#[utoipa::path(
    get, path = "/v1/notify-hooks/{hook}", operation_id = "getNotifyHook", tag = "hooks",
    params(("hook" = schema::HookId, Path, description = "The hook.")),
    responses((status = 200, description = "It.", body = NotifyHook)),
    extensions(("x-action" = json!(Action::HooksManage.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn get_notify_hook(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("hook")?;
    reply::ok(&wire::hook(state.hooks.get(&caller, HookKind::Notify, id).await?))
}
