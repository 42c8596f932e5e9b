//! `testNotifyHook`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use hooks::{HookId, HookKind};
use protocol::{HookAttempt, ProblemCode, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Ring a notify hook once, now.
///
/// The answer says what that brought, whatever it is; of what the receiver answered only the status. A success counts for the hook's health, a
/// failure does not.
#[utoipa::path(
    post, path = "/v1/notify-hooks/{hook}/test", operation_id = "testNotifyHook", tag = "hooks",
    params(("hook" = schema::HookId, Path, description = "The hook.")),
    responses((status = 200, description = "What the attempt brought.", body = HookAttempt)),
    extensions(
        ("x-action" = json!(Action::HooksManage.name())),
        ("x-problem-codes" = json!([
            [ProblemCode::NotFound, ProblemCode::RateLimited, ProblemCode::StateConflict, ProblemCode::SecretsUnavailable].as_slice(),
            &WRITING,
        ].concat())),
    )
)]
pub(crate) async fn test_notify_hook(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: HookId = names.name("hook")?;
    reply::ok(&wire::attempt(state.hooks.test(&caller, HookKind::Notify, id).await?))
}
