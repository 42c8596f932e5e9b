//! The only node over an embedded store.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::{Clock, NodeId, StoreError};

use crate::{ClusterStore, HeldLease, Node, NodeSeen, WorkLease, WorkName};

/// Knows one node and gives it every lease.
pub struct SoleNode {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    node: Option<Node>,
    held: Vec<WorkName>,
}

impl fmt::Debug for SoleNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SoleNode").finish_non_exhaustive()
    }
}

impl SoleNode {
    /// Nobody has shown itself yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl ClusterStore for SoleNode {
    fn is_shared(&self) -> bool {
        false
    }

    async fn beat(&self, node: &Node, _forget_after: Duration) -> Result<(), StoreError> {
        self.with(|state| state.node = Some(node.clone()));
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeSeen>, StoreError> {
        let seen_at = self.clock.now();
        Ok(self.with(|state| state.node.clone().map(|node| NodeSeen { node, seen_at })).into_iter().collect())
    }

    async fn leases(&self) -> Result<Vec<WorkLease>, StoreError> {
        Ok(self.with(|state| {
            let Some(node) = state.node.as_ref().map(|node| node.id) else { return Vec::new() };
            state.held.iter().map(|work| WorkLease { work: work.clone(), node, generation: 1 }).collect()
        }))
    }

    async fn take(&self, _node: NodeId, works: &[WorkName], most: usize, _duration: Duration) -> Result<Vec<HeldLease>, StoreError> {
        Ok(self.with(|state| {
            let free: Vec<WorkName> = works.iter().filter(|work| !state.held.contains(work)).take(most).cloned().collect();
            state.held.extend(free.iter().cloned());
            state.held.sort();
            free.into_iter().map(|work| HeldLease { work, generation: 1 }).collect()
        }))
    }

    async fn renew(&self, _node: NodeId, held: &[HeldLease], _duration: Duration) -> Result<Vec<HeldLease>, StoreError> {
        Ok(held.to_vec())
    }

    async fn give_back(&self, _node: NodeId, held: &[HeldLease]) -> Result<(), StoreError> {
        self.with(|state| state.held.retain(|work| held.iter().all(|lease| lease.work != *work)));
        Ok(())
    }

    async fn leave(&self, _node: NodeId) -> Result<(), StoreError> {
        self.with(|state| *state = State::default());
        Ok(())
    }
}
