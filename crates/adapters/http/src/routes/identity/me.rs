//! `getMe`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use protocol::admin::Me;

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Who the token is.
#[utoipa::path(
    get, path = "/v1/me", operation_id = "getMe", tag = "principals",
    responses((status = 200, description = "Tenant, principal and token.", body = Me)),
    extensions(("x-action" = json!(Action::MeRead.name())))
)]
pub(crate) async fn get_me(State(state): State<ApiState>, Authenticated(caller): Authenticated, uri: Uri) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    reply::ok(&wire::me(state.admin.me(&caller).await?))
}
