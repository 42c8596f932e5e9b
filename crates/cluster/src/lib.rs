//! Nodes over one store: who is there, and which of them does what only one may do at a time.
//!
//! Architecture invariant: the use cases know nothing of nodes. A piece of work runs while its lease is held and is stopped before the lease expires; whatever it writes
//! is fenced or idempotent by itself, so that a stop that comes late costs nothing. Time is the store's.

mod cluster;
mod metrics;
mod node;
mod nodes;
mod settings;
mod share;
mod shift;
mod sole;
mod store;

pub use cluster::{Cluster, ClusterParts};
pub use metrics::Metrics;
pub use node::{Node, NodeState, WorkName};
pub use nodes::{NodeReport, Nodes, NodesError, Presence};
pub use settings::Settings;
pub use share::share;
pub use shift::Tenure;
pub use sole::SoleNode;
pub use store::{ClusterStore, HeldLease, NodeSeen, WorkLease};
