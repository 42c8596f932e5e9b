//! Tenants, for the instance operator (conventions, "Administration routes").

mod create;
mod get;
mod list;
mod update;
mod wire;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::ApiState;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list::list_tenants, create::create_tenant)).routes(routes!(get::get_tenant, update::update_tenant))
}
