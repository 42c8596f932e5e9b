//! Principals and their tokens (conventions, "Administration routes").

mod create_principal;
mod create_token;
mod delete_principal;
mod get_principal;
mod list_principals;
mod list_tokens;
mod me;
mod revoke_token;
mod update_principal;
mod wire;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::ApiState;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(me::get_me))
        .routes(routes!(list_principals::list_principals, create_principal::create_principal))
        .routes(routes!(get_principal::get_principal, update_principal::update_principal, delete_principal::delete_principal))
        .routes(routes!(list_tokens::list_tokens, create_token::create_token))
        .routes(routes!(revoke_token::revoke_token))
}
