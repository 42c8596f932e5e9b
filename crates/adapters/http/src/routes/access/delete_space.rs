//! `deleteSpace`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::SpaceId;
use protocol::{ProblemCode, schema};

use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Delete a space.
///
/// With its channels and the grants on them. What was published to them stays in the log, for its audience.
#[utoipa::path(
    delete, path = "/v1/spaces/{space}", operation_id = "deleteSpace", tag = "access",
    params(("space" = schema::SpaceId, Path, description = "The space.")),
    responses((status = 204, description = "It is gone.")),
    extensions(
        ("x-action" = json!(Action::SpacesManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn delete_space(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let space: SpaceId = names.name("space")?;
    state.admin.delete_space(&caller, &space).await?;
    Ok(reply::no_content())
}
