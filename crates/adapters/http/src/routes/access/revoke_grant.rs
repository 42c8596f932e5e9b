//! `revokeGrant`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::GrantId;
use protocol::{ProblemCode, schema};

use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Revoke a grant.
///
/// Needs `manage` on its resource. What is delivered from here on is judged without it, also what is delivered again.
#[utoipa::path(
    delete, path = "/v1/grants/{grant}", operation_id = "revokeGrant", tag = "access",
    params(("grant" = schema::GrantId, Path, description = "The grant.")),
    responses((status = 204, description = "It is revoked.")),
    extensions(
        ("x-action" = json!(Action::GrantsManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn revoke_grant(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let grant: GrantId = names.name("grant")?;
    state.admin.revoke_grant(&caller, grant).await?;
    Ok(reply::no_content())
}
