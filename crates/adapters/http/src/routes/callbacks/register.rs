//! `registerCallback`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use hooks::NewCallback;
use protocol::{CallbackRegistered, NewCallbackRegistration, ProblemCode};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::creating::{self, Creating};
use crate::routes::hooks::wire::{refusal, url};
use crate::routes::inbox::asked::own;
use crate::services::ApiState;

/// Register a callback of the calling agent.
///
/// Its URL is sent a challenge first, and called only after the receiver has proved that it holds the key. A minted secret is shown this once; a
/// repeat with the same `Idempotency-Key` says `secret_shown: true` instead. A callback says that the head of the inbox moved, and never what
/// came.
#[utoipa::path(
    post, path = "/v1/callback-registrations", operation_id = "registerCallback", tag = "hooks",
    params(("idempotency-key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours.")),
    request_body(content = NewCallbackRegistration, description = "Where to, and how it is signed."),
    responses((status = 201, description = "It is registered, and sent a challenge.", body = CallbackRegistered)),
    extensions(
        ("x-action" = json!(Action::CallbackRegister.name())),
        ("x-problem-codes" = json!([
            [
                ProblemCode::NotFound, ProblemCode::UrlRefused, ProblemCode::LimitReached, ProblemCode::IdempotencyConflict,
                ProblemCode::SecretsUnavailable,
            ].as_slice(),
            &WRITING,
        ].concat())),
    )
)]
pub(crate) async fn register_callback(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let creating = Creating::<NewCallbackRegistration>::read(request, &state.settings).await?;
    let idempotent = creating.idempotent(wire::without_secret);
    let asked = creating.body;
    own(&caller, asked.tenant_id.as_ref(), asked.recipient_id.as_ref())?;
    if asked.delivery_scope.as_ref().is_some_and(Vec::is_empty) {
        return Err(Refusal::invalid("/delivery_scope", "at least one, or no such member"));
    }
    let new = NewCallback {
        url: url(&asked.callback_url, wire::CALLBACK_URL)?,
        auth_mode: wire::auth_mode_of(asked.auth_mode),
        key: asked.secret_id.as_ref().map(wire::key_id).transpose()?,
        public_key: asked.public_key.as_ref().map(wire::public_key).transpose()?,
        max_rate_per_minute: asked.max_rate_per_minute.map(std::num::NonZeroU32::get),
        ignore_presence: asked.ignore_presence.unwrap_or_default(),
    };
    let outcome = state.hooks.register_callback_once(&caller, new, idempotent).await.map_err(refusal(wire::CALLBACK_URL))?;
    creating::answer(outcome, wire::registered)
}
