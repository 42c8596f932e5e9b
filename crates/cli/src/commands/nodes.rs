//! `doorstep nodes`, for the operator of the instance.

use protocol::admin::Node;

use super::when;
use crate::failure::Failure;
use crate::session::Session;

/// Lists the server processes over the store.
pub(crate) async fn run(session: &Session) -> Result<(), Failure> {
    let nodes = session.client()?.nodes().await?.items;
    session.list(&["NODE", "ADDRESS", "STATE", "VERSION", "STARTED", "SEEN", "WORK"], &nodes, |node: &Node| {
        let name = if node.is_self { format!("{} *", node.name) } else { node.name.clone() };
        let work = if node.work.is_empty() { "-".to_owned() } else { node.work.join(" ") };
        vec![name, node.address.clone(), node.state.to_string(), node.version.clone(), when(node.started_at), when(node.last_seen_at), work]
    })
}
