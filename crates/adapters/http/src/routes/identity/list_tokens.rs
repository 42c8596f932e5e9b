//! `listTokens`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::{PrincipalId, TokenId};
use protocol::{Page, ProblemCode, admin, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::listing;
use crate::services::ApiState;

/// The tokens of a principal, without their secrets.
#[utoipa::path(
    get, path = "/v1/principals/{principal}/tokens", operation_id = "listTokens", tag = "principals",
    params(
        ("principal" = schema::PrincipalId, Path, description = "Whose tokens."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "In the order of their creation.", body = Page<admin::TokenItem>)),
    extensions(("x-action" = json!(Action::TokensManage.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn list_tokens(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    let principal: PrincipalId = names.name("principal")?;
    let mut query = Query::of(&uri);
    let keyset = listing::keyset::<TokenId>(&mut query, &state.settings)?;
    query.end()?;
    listing::answer(state.admin.tokens(&caller, &principal, &keyset).await?, wire::token)
}
