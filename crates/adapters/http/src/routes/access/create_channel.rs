//! `createChannel`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::SpaceId;
use protocol::{ProblemCode, admin, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames};
use crate::routes::creating::{self, Creating};
use crate::services::ApiState;

/// Create a channel in a space.
///
/// Needs `manage` on the space.
#[utoipa::path(
    post, path = "/v1/spaces/{space}/channels", operation_id = "createChannel", tag = "access",
    params(
        ("space" = schema::SpaceId, Path, description = "The space."),
        ("idempotency-key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours."),
    ),
    request_body(content = admin::NewChannel, description = "Its own name."),
    responses((status = 201, description = "It is created.", body = admin::Channel)),
    extensions(
        ("x-action" = json!(Action::SpacesManage.name())),
        ("x-problem-codes" = json!([
            [ProblemCode::NotFound, ProblemCode::AlreadyExists, ProblemCode::IdempotencyConflict].as_slice(), &WRITING
        ].concat())),
    )
)]
pub(crate) async fn create_channel(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    let space: SpaceId = names.name("space")?;
    let creating = Creating::<admin::NewChannel>::read(request, &state.settings).await?;
    let idempotent = creating.idempotent(|channel: &authz::Channel| wire::channel(channel.clone()));
    creating::answer(state.admin.create_channel(&caller, &space, creating.body.id, idempotent).await?, wire::channel)
}
