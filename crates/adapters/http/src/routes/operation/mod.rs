//! Operating the server: health, metrics, documents, backup, nodes.

mod backup;
mod documents;
mod health;
mod metrics;
mod nodes;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::ApiState;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(health::get_health))
        .routes(routes!(health::get_readiness))
        .routes(routes!(metrics::get_metrics))
        .routes(routes!(documents::get_openapi))
        .routes(routes!(documents::get_asyncapi))
        .routes(routes!(backup::create_backup))
        .routes(routes!(nodes::list_nodes))
}
