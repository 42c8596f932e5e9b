//! `createToken`.

use std::time::Duration;

use authz::{Action, NewToken};
use axum::extract::{Request, State};
use axum::response::Response;
use domain::PrincipalId;
use protocol::{ProblemCode, admin, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames};
use crate::routes::creating::{self, Creating};
use crate::services::ApiState;

/// Create a token for a principal.
///
/// `{}` gives one with every scope of the principal's kind that does not expire. The secret is shown this once; a repeat with the same
/// `Idempotency-Key` says `secret_shown: true` instead.
#[utoipa::path(
    post, path = "/v1/principals/{principal}/tokens", operation_id = "createToken", tag = "principals",
    params(
        ("principal" = schema::PrincipalId, Path, description = "Whose token."),
        ("idempotency-key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours."),
    ),
    request_body(content = admin::NewToken, description = "What it may."),
    responses((status = 201, description = "It is created.", body = admin::TokenCreated)),
    extensions(
        ("x-action" = json!(Action::TokensManage.name())),
        ("x-problem-codes" = json!([
            [ProblemCode::NotFound, ProblemCode::LimitReached, ProblemCode::IdempotencyConflict].as_slice(), &WRITING
        ].concat())),
    )
)]
pub(crate) async fn create_token(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    let principal: PrincipalId = names.name("principal")?;
    let creating = Creating::<admin::NewToken>::read(request, &state.settings).await?;
    let idempotent = creating.idempotent(wire::without_secret);
    let new = NewToken {
        scopes: creating.body.scopes.as_deref().map(wire::scopes_of),
        expires_in: creating.body.expires_in_seconds.map(|seconds| Duration::from_secs(seconds.get())),
    };
    creating::answer(state.admin.create_token(&caller, &principal, new, idempotent).await?, wire::issued)
}
