//! `listTenants`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::TenantId;
use protocol::{Page, admin};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::listing;
use crate::services::ApiState;

/// The tenants of the instance.
#[utoipa::path(
    get, path = "/v1/tenants", operation_id = "listTenants", tag = "tenants",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "By name.", body = Page<admin::Tenant>)),
    extensions(("x-action" = json!(Action::TenantsManage.name())))
)]
pub(crate) async fn list_tenants(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let keyset = listing::keyset::<TenantId>(&mut query, &state.settings)?;
    query.end()?;
    listing::answer(state.admin.tenants(&caller, &keyset).await?, wire::tenant)
}
