//! `enableNotifyHook`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use hooks::{HookId, HookKind};
use protocol::{NotifyHook, ProblemCode, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Have a notify hook rung again.
///
/// Its failures are forgotten, and it is rung for what waits already. One whose receiver has not answered a challenge is sent another.
#[utoipa::path(
    post, path = "/v1/notify-hooks/{hook}/enable", operation_id = "enableNotifyHook", tag = "hooks",
    params(("hook" = schema::HookId, Path, description = "The hook.")),
    responses((status = 200, description = "The hook as it is now.", body = NotifyHook)),
    extensions(
        ("x-action" = json!(Action::HooksManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::UrlRefused].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn enable_notify_hook(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("hook")?;
    reply::ok(&wire::hook(state.hooks.enable(&caller, HookKind::Notify, id).await?))
}
