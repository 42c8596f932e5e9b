//! `listGrants`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::{GrantId, PrincipalId};
use protocol::{Page, admin, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::listing;
use crate::services::ApiState;

/// The grants that the caller may know of: its own, and those on what it manages.
///
/// A page can hold fewer entries than `limit` although more follow: go on as long as there is a `next_cursor`.
#[utoipa::path(
    get, path = "/v1/grants", operation_id = "listGrants", tag = "access",
    params(
        ("principal" = Option<schema::PrincipalId>, Query, description = "Only those of this principal."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "In the order of their creation.", body = Page<admin::Grant>)),
    extensions(("x-action" = json!(Action::GrantsRead.name())))
)]
pub(crate) async fn list_grants(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let principal = query.parsed::<PrincipalId>("principal", PrincipalId::EXPECTATION)?;
    let keyset = listing::keyset::<GrantId>(&mut query, &state.settings)?;
    query.end()?;
    listing::answer(state.admin.grants(&caller, principal.as_ref(), &keyset).await?, wire::grant)
}
