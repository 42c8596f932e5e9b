//! `listSpaces`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::SpaceId;
use protocol::{Page, admin};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::listing;
use crate::services::ApiState;

/// The spaces that the caller may know of.
///
/// A page can hold fewer entries than `limit` although more follow: go on as long as there is a `next_cursor`.
#[utoipa::path(
    get, path = "/v1/spaces", operation_id = "listSpaces", tag = "access",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "By name.", body = Page<admin::Space>)),
    extensions(("x-action" = json!(Action::SpacesRead.name())))
)]
pub(crate) async fn list_spaces(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let keyset = listing::keyset::<SpaceId>(&mut query, &state.settings)?;
    query.end()?;
    listing::answer(state.admin.spaces(&caller, &keyset).await?, wire::space)
}
