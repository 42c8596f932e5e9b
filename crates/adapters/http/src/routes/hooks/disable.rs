//! `disableNotifyHook`.

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

/// Have a notify hook not rung any more.
///
/// At once: rings that are on their way are given up. Items wait in the inbox as before.
#[utoipa::path(
    post, path = "/v1/notify-hooks/{hook}/disable", operation_id = "disableNotifyHook", tag = "hooks",
    params(("hook" = schema::HookId, Path, description = "The hook.")),
    responses((status = 200, description = "The hook as it is now.", body = NotifyHook)),
    extensions(
        ("x-action" = json!(Action::HooksManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn disable_notify_hook(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("hook")?;
    reply::ok(&wire::hook(state.hooks.disable(&caller, HookKind::Notify, id).await?))
}
