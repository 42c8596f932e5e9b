//! `rotateCallback`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use hooks::{HookId, NewKey};
use protocol::{CallbackRotate, CallbackRotated, ProblemCode, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query, parse_json};
use crate::routes::reply;
use crate::services::ApiState;

/// Give a callback another key.
///
/// A minted secret is shown this once; a receiver that registered a public key brings another. The replaced keys count too until
/// `previous_until_utc` (`hooks.rotation_overlap`). A callback that failures disabled is called again.
#[utoipa::path(
    post, path = "/v1/callback-registrations/{registration}/rotate", operation_id = "rotateCallback", tag = "hooks",
    params(("registration" = schema::HookId, Path, description = "The registration.")),
    request_body(content = CallbackRotate, description = "What the key is called, and a public key where there is one."),
    responses((status = 200, description = "The new key.", body = CallbackRotated)),
    extensions(
        ("x-action" = json!(Action::CallbackRotate.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::SecretsUnavailable].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn rotate_callback(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    Query::none(request.uri())?;
    let id: HookId = names.name("registration")?;
    let (parts, body) = request.into_parts();
    let (asked, _) = parse_json::<CallbackRotate>(&parts.headers, body, &state.settings).await?;
    let new = NewKey {
        key: asked.secret_id.as_ref().map(wire::key_id).transpose()?,
        public_key: asked.public_key.as_ref().map(wire::public_key).transpose()?,
    };
    reply::ok(&wire::rotated(&state.hooks.rotate_callback(&caller, id, new).await?))
}
