//! The port to what nodes know of each other. "The store's clock" is the database's: no node's own clock decides anything.

use std::time::Duration;

use async_trait::async_trait;
use domain::{NodeId, StoreError, Timestamp};

use crate::{Node, WorkName};

/// A node with its last sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// The node.
    pub node: Node,
    /// When it last gave a sign of life, by the store's clock.
    pub seen_at: Timestamp,
}

/// Who may do a piece of work alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkLease {
    /// The work.
    pub work: WorkName,
    /// Whose it is.
    pub node: NodeId,
    /// How often the work was taken: the fence of whoever took it last.
    pub generation: u64,
}

/// A lease that the asking node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    /// The work.
    pub work: WorkName,
    /// The fence that it was taken under.
    pub generation: u64,
}

/// Nodes and their leases. Every call is one transaction.
#[async_trait]
pub trait ClusterStore: Send + Sync {
    /// Whether other processes can use the store. If not, the one that does holds every lease always, and nothing here has to be asked.
    fn is_shared(&self) -> bool;
    /// The node gives a sign of life: what it says of itself replaces what it said before. Nodes that gave none for longer than `forget_after` are forgotten.
    async fn beat(&self, node: &Node, forget_after: Duration) -> Result<(), StoreError>;
    /// Every node that is not forgotten, by when it started.
    async fn nodes(&self) -> Result<Vec<NodeSeen>, StoreError>;
    /// The leases that are held at this moment, by work.
    async fn leases(&self) -> Result<Vec<WorkLease>, StoreError>;
    /// Takes those of `works` that nobody holds, at most `most` of them, for so long from now; each under a generation above every one before. Answers what was taken.
    async fn take(&self, node: NodeId, works: &[WorkName], most: usize, duration: Duration) -> Result<Vec<HeldLease>, StoreError>;
    /// Holds what is still held for so long from now; answers that. A lease that has expired is not renewed, also when nobody took it since.
    async fn renew(&self, node: NodeId, held: &[HeldLease], duration: Duration) -> Result<Vec<HeldLease>, StoreError>;
    /// Ends these leases, as far as they are still this node's under these generations. Generations are not forgotten.
    async fn give_back(&self, node: NodeId, held: &[HeldLease]) -> Result<(), StoreError>;
    /// The node goes: it is forgotten, and nothing is held by it any more.
    async fn leave(&self, node: NodeId) -> Result<(), StoreError>;
}
