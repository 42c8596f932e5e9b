//! Nodes: the server processes over one store.

use domain::{NodeId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::vocabulary::vocabulary;
use crate::{Open, schema};

vocabulary! {
    /// Whether a node is there.
    pub enum NodeState: "a state of a node: serving, draining or lost" {
        /// It serves.
        Serving = "serving",
        /// It stops.
        Draining = "draining",
        /// It gave no sign of life for `cluster.node_timeout`.
        Lost = "lost",
    }
}

/// A server process over the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ServerNode, example = json!({
    "id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "name": "eu-1", "address": "10.0.0.5:7420", "version": "0.1.0", "state": "serving",
    "started_at": "2026-07-12T16:22:03.123Z", "last_seen_at": "2026-07-12T17:01:44.002Z", "work": ["inbox.sweeper"], "is_self": true
}))]
pub struct Node {
    /// Which one; another after each start.
    #[schema(value_type = schema::NodeId)]
    pub id: NodeId,
    /// What its operator calls it (`cluster.node_name`).
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// Its release.
    pub version: String,
    /// Whether it is there.
    #[schema(value_type = NodeState)]
    pub state: Open<NodeState>,
    /// When it started.
    #[schema(value_type = schema::Timestamp)]
    pub started_at: Timestamp,
    /// Its last sign of life.
    #[schema(value_type = schema::Timestamp)]
    pub last_seen_at: Timestamp,
    /// The background work that it does at the moment, of what one node does at a time.
    pub work: Vec<String>,
    /// Whether it is the one that answers.
    #[serde(default)]
    pub is_self: bool,
}
