//! A store that several nodes share, in memory, with time of its own and faults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use cluster::{ClusterStore, HeldLease, Node, NodeSeen, WorkLease, WorkName};
use domain::{Clock, NodeId, StoreError, Timestamp};
use tokio::time::Instant;

/// The store's clock: virtual time.
#[derive(Debug)]
pub(crate) struct VirtualClock(pub(crate) Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000).plus(self.0.elapsed())
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) node: Option<NodeId>,
    pub(crate) generation: u64,
    pub(crate) expires_at: Timestamp,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) nodes: BTreeMap<NodeId, NodeSeen>,
    pub(crate) leases: BTreeMap<WorkName, Row>,
    /// For these nodes the store is away.
    pub(crate) cut_off: Vec<NodeId>,
}

pub(crate) struct Memory {
    state: Mutex<State>,
    pub(crate) clock: Arc<VirtualClock>,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), clock: Arc::new(VirtualClock(Instant::now())) })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn reach(&self, node: NodeId) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state();
        if state.cut_off.contains(&node) { Err(StoreError::Unavailable) } else { Ok(state) }
    }
}

#[async_trait]
impl ClusterStore for Memory {
    fn is_shared(&self) -> bool {
        true
    }

    async fn beat(&self, node: &Node, forget_after: Duration) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut state = self.reach(node.id)?;
        state.nodes.insert(node.id, NodeSeen { node: node.clone(), seen_at: now });
        state.nodes.retain(|_, seen| now.since(seen.seen_at) <= forget_after);
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeSeen>, StoreError> {
        Ok(self.state().nodes.values().cloned().collect())
    }

    async fn leases(&self) -> Result<Vec<WorkLease>, StoreError> {
        let now = self.clock.now();
        let held = |(work, row): (&WorkName, &Row)| {
            let node = row.node.filter(|_| row.expires_at > now)?;
            Some(WorkLease { work: work.clone(), node, generation: row.generation })
        };
        Ok(self.state().leases.iter().filter_map(held).collect())
    }

    async fn take(&self, node: NodeId, works: &[WorkName], most: usize, duration: Duration) -> Result<Vec<HeldLease>, StoreError> {
        let now = self.clock.now();
        let mut state = self.reach(node)?;
        let mut taken = Vec::new();
        for work in works {
            let row = state.leases.entry(work.clone()).or_insert(Row { node: None, generation: 0, expires_at: now });
            if taken.len() < most && (row.node.is_none() || row.expires_at <= now) {
                *row = Row { node: Some(node), generation: row.generation + 1, expires_at: now.plus(duration) };
                taken.push(HeldLease { work: work.clone(), generation: row.generation });
            }
        }
        Ok(taken)
    }

    async fn renew(&self, node: NodeId, held: &[HeldLease], duration: Duration) -> Result<Vec<HeldLease>, StoreError> {
        let now = self.clock.now();
        let mut state = self.reach(node)?;
        let mut renewed = Vec::new();
        for lease in held {
            let Some(row) = state.leases.get_mut(&lease.work) else { continue };
            if row.node == Some(node) && row.generation == lease.generation && row.expires_at > now {
                row.expires_at = now.plus(duration);
                renewed.push(lease.clone());
            }
        }
        Ok(renewed)
    }

    async fn give_back(&self, node: NodeId, held: &[HeldLease]) -> Result<(), StoreError> {
        let mut state = self.reach(node)?;
        for lease in held {
            if let Some(row) = state.leases.get_mut(&lease.work).filter(|row| row.node == Some(node) && row.generation == lease.generation)
            {
                row.node = None;
            }
        }
        Ok(())
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        let mut state = self.reach(node)?;
        state.nodes.remove(&node);
        state.leases.values_mut().filter(|row| row.node == Some(node)).for_each(|row| row.node = None);
        Ok(())
    }
}
