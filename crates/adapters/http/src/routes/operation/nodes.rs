//! `listNodes`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use cluster::{NodeReport, NodeState, NodesError, Presence};
use protocol::{Open, Page, admin};

use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// The server processes over the store.
///
/// For the instance operator. With an embedded store there is one. A node that stops leaves the list; one that was lost stays for `cluster.node_retention`.
#[utoipa::path(
    get, path = "/v1/nodes", operation_id = "listNodes", tag = "operation",
    responses((status = 200, description = "By when they started.", body = Page<admin::Node>)),
    extensions(("x-action" = json!(Action::NodesRead.name())))
)]
pub(crate) async fn list_nodes(State(state): State<ApiState>, Authenticated(caller): Authenticated, uri: Uri) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let nodes = state.nodes.list(&caller).await?;
    reply::ok(&Page { items: nodes.into_iter().map(shown).collect(), next_cursor: None })
}

fn shown(report: NodeReport) -> admin::Node {
    let NodeReport { node, seen_at, presence, works, is_self } = report;
    admin::Node {
        id: node.id,
        name: node.name,
        address: node.address,
        version: node.version,
        state: Open::Known(state(presence)),
        started_at: node.started_at,
        last_seen_at: seen_at,
        work: works.iter().map(ToString::to_string).collect(),
        is_self,
    }
}

const fn state(presence: Presence) -> admin::NodeState {
    match presence {
        Presence::There(NodeState::Serving) => admin::NodeState::Serving,
        Presence::There(NodeState::Draining) => admin::NodeState::Draining,
        Presence::Lost => admin::NodeState::Lost,
    }
}

impl From<NodesError> for Refusal {
    fn from(error: NodesError) -> Self {
        match error {
            NodesError::Denied(denied) => denied.into(),
            NodesError::Store(error) => error.into(),
        }
    }
}
