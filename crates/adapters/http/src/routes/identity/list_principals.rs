//! `listPrincipals`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::PrincipalId;
use protocol::{Page, admin};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::listing;
use crate::services::ApiState;

/// The principals of the tenant.
#[utoipa::path(
    get, path = "/v1/principals", operation_id = "listPrincipals", tag = "principals",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "By id.", body = Page<admin::Principal>)),
    extensions(("x-action" = json!(Action::PrincipalsRead.name())))
)]
pub(crate) async fn list_principals(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let keyset = listing::keyset::<PrincipalId>(&mut query, &state.settings)?;
    query.end()?;
    listing::answer(state.admin.principals(&caller, &keyset).await?, wire::principal)
}
