//! `createSpace`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use protocol::{ProblemCode, admin};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::creating::{self, Creating};
use crate::services::ApiState;

/// Create a space.
#[utoipa::path(
    post, path = "/v1/spaces", operation_id = "createSpace", tag = "access",
    params(("idempotency-key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours.")),
    request_body(content = admin::NewSpace, description = "Its name."),
    responses((status = 201, description = "It is created.", body = admin::Space)),
    extensions(
        ("x-action" = json!(Action::SpacesManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::AlreadyExists, ProblemCode::IdempotencyConflict].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn create_space(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let creating = Creating::<admin::NewSpace>::read(request, &state.settings).await?;
    let idempotent = creating.idempotent(|space: &authz::Space| wire::space(space.clone()));
    creating::answer(state.admin.create_space(&caller, creating.body.id, idempotent).await?, wire::space)
}
