//! Operating the server: health, metrics, documents, backup.

mod backup;
mod documents;
mod health;
mod metrics;

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
}
