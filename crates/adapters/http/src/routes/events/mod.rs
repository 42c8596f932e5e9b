//! Events: publish, schedule, read.

mod cancel_scheduled;
mod list;
mod list_scheduled;
mod list_staged;
mod publish;
mod sse;
mod stream;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::ApiState;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list::list_events, publish::publish_events))
        .routes(routes!(stream::stream_events))
        .routes(routes!(list_scheduled::list_scheduled_events))
        .routes(routes!(list_staged::list_staged_events))
        .routes(routes!(cancel_scheduled::cancel_scheduled_event))
}
