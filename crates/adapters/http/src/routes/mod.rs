//! Every operation, one file each: what it reads, what it answers, how it is documented.

mod access;
mod audit;
mod callbacks;
mod consumers;
mod creating;
mod event_stream;
mod events;
mod gateway;
mod hooks;
mod identity;
mod inbox;
mod listing;
mod operation;
mod reply;
mod tenants;

use utoipa_axum::router::OpenApiRouter;

use crate::documents;
use crate::services::ApiState;

/// All routes with their documentation: a route that is not documented cannot be added here.
pub(crate) fn all() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(documents::base())
        .merge(events::routes())
        .merge(consumers::routes())
        .merge(inbox::routes())
        .merge(hooks::routes())
        .merge(callbacks::routes())
        .merge(gateway::routes())
        .merge(identity::routes())
        .merge(access::routes())
        .merge(tenants::routes())
        .merge(audit::routes())
        .merge(operation::routes())
}
