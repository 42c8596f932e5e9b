//! Inboxes: work that waits, claims under a lease, and the signals around it (inbox.md, "API"; seed 000).

mod acknowledge;
pub(super) mod asked;
mod claim;
mod claim_next;
mod claims;
mod discard;
mod get_item;
mod get_policy;
mod head;
mod heartbeat;
mod list_items;
mod pause;
mod poll;
mod quarantine;
mod redrive;
mod release;
mod resume;
mod set_own_presence;
mod set_policy;
mod set_presence;
mod signals;
mod state;
mod stream;
mod subscribe;
mod unquarantine;
mod unread;
mod wire;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::ApiState;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(subscribe::subscribe_session))
        .routes(routes!(poll::poll_inbox))
        .routes(routes!(head::get_inbox_head))
        .routes(routes!(claim::claim_items))
        .routes(routes!(claim_next::claim_next))
        .routes(routes!(acknowledge::acknowledge_items))
        .routes(routes!(release::release_item))
        .routes(routes!(heartbeat::heartbeat_leases))
        .routes(routes!(state::get_inbox))
        .routes(routes!(list_items::list_inbox_items))
        .routes(routes!(get_item::get_inbox_item))
        .merge(operator_routes())
        .routes(routes!(stream::stream_signals))
}

fn operator_routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(redrive::redrive_items))
        .routes(routes!(discard::discard_items))
        .routes(routes!(quarantine::quarantine_item))
        .routes(routes!(unquarantine::unquarantine_item))
        .routes(routes!(pause::pause_inbox))
        .routes(routes!(resume::resume_inbox))
        .routes(routes!(set_own_presence::set_own_presence))
        .routes(routes!(set_presence::set_presence))
        .routes(routes!(get_policy::get_inbox_policy, set_policy::set_inbox_policy))
}
