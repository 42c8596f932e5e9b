//! `revokeToken`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::{PrincipalId, TokenId};
use protocol::{ProblemCode, schema};

use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Revoke a token.
///
/// Connections made with it close with 4012 within a second.
#[utoipa::path(
    delete, path = "/v1/principals/{principal}/tokens/{token}", operation_id = "revokeToken", tag = "principals",
    params(
        ("principal" = schema::PrincipalId, Path, description = "Whose token."),
        ("token" = schema::TokenId, Path, description = "The token's identity, not its secret."),
    ),
    responses((status = 204, description = "It is revoked.")),
    extensions(
        ("x-action" = json!(Action::TokensManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn revoke_token(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let principal: PrincipalId = names.name("principal")?;
    let token: TokenId = names.name("token")?;
    state.admin.revoke_token(&caller, &principal, token).await?;
    Ok(reply::no_content())
}
