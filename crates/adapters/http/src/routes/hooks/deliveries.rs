//! `listNotifyHookDeliveries`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use hooks::{HookId, HookKind};
use protocol::{HookAttempt, Page, ProblemCode, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// The last attempts to ring a notify hook.
///
/// At most `hooks.log_max`, and of what the receiver answered only the status.
#[utoipa::path(
    get, path = "/v1/notify-hooks/{hook}/deliveries", operation_id = "listNotifyHookDeliveries", tag = "hooks",
    params(("hook" = schema::HookId, Path, description = "The hook.")),
    responses((status = 200, description = "The newest first; always one page.", body = Page<HookAttempt>)),
    extensions(("x-action" = json!(Action::HooksManage.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn list_notify_hook_deliveries(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("hook")?;
    let attempts = state.hooks.deliveries(&caller, HookKind::Notify, id).await?;
    reply::ok(&Page { items: attempts.into_iter().map(wire::attempt).collect(), next_cursor: None })
}
