//! `updateTenant`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::TenantId;
use protocol::{ProblemCode, admin, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query, parse_json};
use crate::routes::reply;
use crate::services::ApiState;

/// Suspend a tenant, or resume it.
///
/// Suspending refuses its requests and closes its connections with 4016; nothing is removed. The tenant `default` operates the instance and cannot
/// be suspended.
#[utoipa::path(
    patch, path = "/v1/tenants/{tenant}", operation_id = "updateTenant", tag = "tenants",
    params(("tenant" = schema::TenantId, Path, description = "The tenant.")),
    request_body(content = admin::TenantChange, description = "`active` or `suspended`."),
    responses((status = 200, description = "The tenant as it is now.", body = admin::Tenant)),
    extensions(
        ("x-action" = json!(Action::TenantsManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn update_tenant(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    Query::none(request.uri())?;
    let id: TenantId = names.name("tenant")?;
    let (parts, body) = request.into_parts();
    let (change, _) = parse_json::<admin::TenantChange>(&parts.headers, body, &state.settings).await?;
    reply::ok(&wire::tenant(state.admin.set_tenant_state(&caller, &id, wire::state_of(change.state)).await?))
}
