//! Named consumers of agents (seed 004, design notes 8 to 10).

mod ack;
mod list;
mod poll;
mod state;
mod wire;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::ApiState;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(state::get_consumer_state))
        .routes(routes!(poll::poll_agent_events))
        .routes(routes!(ack::ack_agent_events))
        .routes(routes!(list::list_consumers))
}
