//! Spaces, channels and grants (conventions, "Administration routes").

mod create_channel;
mod create_grant;
mod create_space;
mod delete_channel;
mod delete_space;
mod list_channels;
mod list_grants;
mod list_spaces;
mod revoke_grant;
mod wire;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::ApiState;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_spaces::list_spaces, create_space::create_space))
        .routes(routes!(delete_space::delete_space))
        .routes(routes!(list_channels::list_channels, create_channel::create_channel))
        .routes(routes!(delete_channel::delete_channel))
        .routes(routes!(list_grants::list_grants, create_grant::create_grant))
        .routes(routes!(revoke_grant::revoke_grant))
}
