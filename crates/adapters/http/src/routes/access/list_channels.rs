//! `listChannels`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::{ChannelId, SpaceId};
use protocol::{Page, ProblemCode, admin, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::listing;
use crate::services::ApiState;

/// The channels of a space that the caller may know of.
///
/// A page can hold fewer entries than `limit` although more follow: go on as long as there is a `next_cursor`.
#[utoipa::path(
    get, path = "/v1/spaces/{space}/channels", operation_id = "listChannels", tag = "access",
    params(
        ("space" = schema::SpaceId, Path, description = "The space."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "By name.", body = Page<admin::Channel>)),
    extensions(("x-action" = json!(Action::SpacesRead.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn list_channels(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    let space: SpaceId = names.name("space")?;
    let mut query = Query::of(&uri);
    let keyset = listing::keyset::<ChannelId>(&mut query, &state.settings)?;
    query.end()?;
    listing::answer(state.admin.channels(&caller, &space, &keyset).await?, wire::channel)
}
