//! `deletePrincipal`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::PrincipalId;
use protocol::{ProblemCode, schema};

use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Delete a principal.
///
/// With its tokens, grants and consumers; its connections close with 4012. What it published stays in the log. The tenant's last enabled owner
/// stays.
#[utoipa::path(
    delete, path = "/v1/principals/{principal}", operation_id = "deletePrincipal", tag = "principals",
    params(("principal" = schema::PrincipalId, Path, description = "The principal.")),
    responses((status = 204, description = "It is gone.")),
    extensions(
        ("x-action" = json!(Action::PrincipalsManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::StateConflict].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn delete_principal(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let id: PrincipalId = names.name("principal")?;
    state.admin.delete_principal(&caller, &id).await?;
    Ok(reply::no_content())
}
