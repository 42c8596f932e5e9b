//! `getTenant`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::TenantId;
use protocol::{ProblemCode, admin, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// One tenant.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}", operation_id = "getTenant", tag = "tenants",
    params(("tenant" = schema::TenantId, Path, description = "The tenant.")),
    responses((status = 200, description = "It.", body = admin::Tenant)),
    extensions(("x-action" = json!(Action::TenantsManage.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn get_tenant(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: TenantId = names.name("tenant")?;
    reply::ok(&wire::tenant(state.admin.tenant(&caller, &id).await?))
}
