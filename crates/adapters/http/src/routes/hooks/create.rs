//! `createNotifyHook`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use hooks::NewHook;
use protocol::{NewNotifyHook, NotifyHookCreated, ProblemCode};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::creating::{self, Creating};
use crate::services::ApiState;

/// Make a notify hook.
///
/// Its URL is called with a signed `POST` for each item of its agent that becomes claimable (Standard Webhooks). The secret is shown this once;
/// a repeat with the same `Idempotency-Key` says `secret_shown: true` instead. An agent makes its own; operators name an `agent`.
#[utoipa::path(
    post, path = "/v1/notify-hooks", operation_id = "createNotifyHook", tag = "hooks",
    params(("idempotency-key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours.")),
    request_body(content = NewNotifyHook, description = "Where to, and for which queues."),
    responses((status = 201, description = "It is made.", body = NotifyHookCreated)),
    extensions(
        ("x-action" = json!(Action::HooksManage.name())),
        ("x-problem-codes" = json!([
            [
                ProblemCode::NotFound, ProblemCode::UrlRefused, ProblemCode::LimitReached, ProblemCode::IdempotencyConflict,
                ProblemCode::SecretsUnavailable,
            ].as_slice(),
            &WRITING,
        ].concat())),
    )
)]
pub(crate) async fn create_notify_hook(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let creating = Creating::<NewNotifyHook>::read(request, &state.settings).await?;
    let idempotent = creating.idempotent(wire::without_secret);
    let new = NewHook {
        agent: creating.body.agent,
        url: wire::url(&creating.body.url, wire::URL)?,
        queues: creating.body.queues.unwrap_or_default(),
        ignore_presence: creating.body.ignore_presence.unwrap_or_default(),
    };
    let outcome = state.hooks.create_once(&caller, new, idempotent).await.map_err(wire::refusal(wire::URL))?;
    creating::answer(outcome, wire::created)
}
