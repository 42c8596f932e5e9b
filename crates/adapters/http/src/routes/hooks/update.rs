//! `updateNotifyHook`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use hooks::{HookId, HookPatch};
use protocol::{NotifyHook, NotifyHookChange, ProblemCode, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query, parse_json};
use crate::routes::reply;
use crate::services::ApiState;

/// Change a notify hook.
///
/// What is absent stays. Another URL is checked like the first one; rings that are on their way go there.
#[utoipa::path(
    patch, path = "/v1/notify-hooks/{hook}", operation_id = "updateNotifyHook", tag = "hooks",
    params(("hook" = schema::HookId, Path, description = "The hook.")),
    request_body(content = NotifyHookChange, description = "What to change."),
    responses((status = 200, description = "The hook as it is now.", body = NotifyHook)),
    extensions(
        ("x-action" = json!(Action::HooksManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::UrlRefused].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn update_notify_hook(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    Query::none(request.uri())?;
    let id: HookId = names.name("hook")?;
    let (parts, body) = request.into_parts();
    let (change, _) = parse_json::<NotifyHookChange>(&parts.headers, body, &state.settings).await?;
    let patch = HookPatch {
        url: change.url.map(|url| wire::url(&url, wire::URL)).transpose()?,
        queues: change.queues,
        ignore_presence: change.ignore_presence,
    };
    reply::ok(&wire::hook(state.hooks.update(&caller, id, patch).await.map_err(wire::refusal(wire::URL))?))
}
