//! Every operation, one file each: what it reads, what it answers, how it is documented.

mod consumers;
mod events;
mod gateway;
mod operation;
mod reply;

use utoipa_axum::router::OpenApiRouter;

use crate::documents;
use crate::services::ApiState;

/// All routes with their documentation: a route that is not documented cannot be added here.
pub(crate) fn all() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(documents::base())
        .merge(events::routes())
        .merge(consumers::routes())
        .merge(gateway::routes())
        .merge(operation::routes())
}
