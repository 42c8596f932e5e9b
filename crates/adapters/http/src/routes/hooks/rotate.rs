//! `rotateNotifyHook`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use hooks::HookId;
use protocol::{NotifyHookRotated, ProblemCode, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Give a notify hook another secret.
///
/// It is shown this once. Rings are signed with the replaced secrets too until `previous_until` (`hooks.rotation_overlap`), so that the receiver
/// can be changed meanwhile. A hook that failures disabled is rung again. Rotating twice does no harm.
#[utoipa::path(
    post, path = "/v1/notify-hooks/{hook}/rotate", operation_id = "rotateNotifyHook", tag = "hooks",
    params(("hook" = schema::HookId, Path, description = "The hook.")),
    responses((status = 200, description = "The new secret.", body = NotifyHookRotated)),
    extensions(
        ("x-action" = json!(Action::HooksManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::SecretsUnavailable].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn rotate_notify_hook(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("hook")?;
    reply::ok(&wire::rotated(state.hooks.rotate(&caller, id).await?)?)
}
