//! `getPrincipal`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::PrincipalId;
use protocol::{ProblemCode, admin, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// One principal.
#[utoipa::path(
    get, path = "/v1/principals/{principal}", operation_id = "getPrincipal", tag = "principals",
    params(("principal" = schema::PrincipalId, Path, description = "The principal.")),
    responses((status = 200, description = "It.", body = admin::Principal)),
    extensions(("x-action" = json!(Action::PrincipalsRead.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn get_principal(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: PrincipalId = names.name("principal")?;
    reply::ok(&wire::principal(state.admin.principal(&caller, &id).await?))
}
