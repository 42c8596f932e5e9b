//! `deleteChannel`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::{ChannelId, SpaceId};
use protocol::{ProblemCode, schema};

use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Delete a channel.
///
/// With the grants on it. Needs `manage` on the space. What was published to it stays in the log, for its audience.
#[utoipa::path(
    delete, path = "/v1/spaces/{space}/channels/{channel}", operation_id = "deleteChannel", tag = "access",
    params(
        ("space" = schema::SpaceId, Path, description = "The space."),
        ("channel" = schema::ChannelId, Path, description = "The channel's own name."),
    ),
    responses((status = 204, description = "It is gone.")),
    extensions(
        ("x-action" = json!(Action::SpacesManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn delete_channel(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let space: SpaceId = names.name("space")?;
    let channel: ChannelId = names.name("channel")?;
    state.admin.delete_channel(&caller, &space, &channel).await?;
    Ok(reply::no_content())
}
