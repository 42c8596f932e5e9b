//! A node among the others: gives signs of life and holds its share of the leases.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::{BoxFuture, Clock, StoreError};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::shift::{Shift, Tenure, Watch, Work};
use crate::{ClusterStore, HeldLease, Metrics, Node, NodeReport, NodeSeen, NodeState, Presence, Settings, WorkName, share};

/// What a cluster is made of.
#[expect(missing_debug_implementations, reason = "ports have no debug form")]
pub struct ClusterParts {
    /// What nodes know of each other.
    pub store: Arc<dyn ClusterStore>,
    /// The store's clock.
    pub clock: Arc<dyn Clock>,
    /// This node; `state` is kept by the cluster.
    pub node: Node,
    /// Durations.
    pub settings: Settings,
}

/// This node among the others.
pub struct Cluster {
    store: Arc<dyn ClusterStore>,
    clock: Arc<dyn Clock>,
    node: Node,
    settings: Settings,
    metrics: Arc<Metrics>,
    works: Mutex<BTreeMap<WorkName, Work>>,
    draining: AtomicBool,
    hurry: Arc<Notify>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("node", &self.node).field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The work of this node, what is about to stop included.
type Shifts = BTreeMap<WorkName, Shift>;

/// How long work that holds its lease always may take to stop.
const PATIENCE: Duration = Duration::from_mins(1);

impl Cluster {
    /// Nothing happens before [`Cluster::run`].
    pub fn new(parts: ClusterParts) -> Arc<Self> {
        let ClusterParts { store, clock, node, settings } = parts;
        Arc::new(Self {
            store,
            clock,
            node,
            settings,
            metrics: Arc::default(),
            works: Mutex::default(),
            draining: AtomicBool::new(false),
            hurry: Arc::default(),
        })
    }

    /// Adds a piece of work that one node does at a time. `work` is called anew each time that this node gets the lease; what it answers runs until
    /// [`Tenure::stop`] is cancelled, and is dropped where it is when it does not end before the lease expires.
    pub fn share_work<F>(&self, name: WorkName, work: impl Fn(Tenure) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let boxed: Work = Arc::new(move |tenure| -> BoxFuture<'static, ()> { Box::pin(work(tenure)) });
        self.works.lock().unwrap_or_else(PoisonError::into_inner).insert(name, boxed);
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// This node.
    pub fn node(&self) -> Node {
        let state = if self.draining.load(Ordering::Acquire) { NodeState::Draining } else { NodeState::Serving };
        Node { state, ..self.node.clone() }
    }

    /// From now on the node says that it is draining, and gives its work to the others.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.hurry.notify_one();
    }

    /// Gives signs of life and does this node's share of the work until `stop`; then stops the work, gives every lease back and leaves.
    pub async fn run(self: Arc<Self>, tracker: TaskTracker, stop: CancellationToken) {
        let mut shifts = Shifts::new();
        let mut had_failed = false;
        while !stop.is_cancelled() {
            // A store that does not answer must not keep this node from asking again before its leases expire.
            let round = timeout(self.settings.lease_duration / 2, self.round(&mut shifts, &tracker)).await;
            let pause = match round.unwrap_or(Err(StoreError::Unavailable)) {
                Ok(()) => {
                    had_failed = false;
                    self.settings.round()
                }
                Err(error) => {
                    self.metrics.failures.increment();
                    if !std::mem::replace(&mut had_failed, true) {
                        tracing::warn!(error = %error, "the store cannot be told that this node is there; it is tried again");
                    }
                    self.settings.round() / 2
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.hurry.notified() => {}
                () = sleep(pause) => {}
            }
        }
        self.end(shifts).await;
    }

    /// One round: a sign of life, the leases renewed, this node's share taken.
    async fn round(&self, shifts: &mut Shifts, tracker: &TaskTracker) -> Result<(), StoreError> {
        let node = self.node();
        self.renew(shifts).await?;
        self.give_back(shifts).await?;
        self.store.beat(&node, self.settings.node_retention).await?;
        let serving = self.serving().await?;
        let most = match node.state {
            NodeState::Serving => share(self.names().len(), serving),
            NodeState::Draining => 0,
        };
        // What goes beyond the share is given back once it has stopped: a lease is never free while its work goes on.
        shifts.values_mut().filter(|shift| shift.goes_on()).skip(most).for_each(Shift::stop);
        self.take(shifts, most, tracker).await
    }

    /// Renews what goes on: what does not stop when it is asked to is cut off when its lease expires. What is not held any more stops at once.
    async fn renew(&self, shifts: &mut Shifts) -> Result<(), StoreError> {
        let held: Vec<HeldLease> = shifts.values().filter(|shift| shift.goes_on()).map(|shift| shift.lease.clone()).collect();
        if held.is_empty() {
            return Ok(());
        }
        let asked_at = Instant::now();
        let renewed = self.store.renew(self.node.id, &held, self.settings.lease_duration).await?;
        for shift in shifts.values_mut().filter(|shift| held.contains(&shift.lease)) {
            if renewed.contains(&shift.lease) {
                shift.prolong(self.until(asked_at));
            } else {
                tracing::warn!(work.name = %shift.lease.work, "the lease is lost; its work stops");
                self.metrics.lost.increment();
                shift.stop();
            }
        }
        Ok(())
    }

    /// Until when a lease surely holds: the store granted it after it was asked.
    fn until(&self, asked_at: Instant) -> Option<Instant> {
        self.store.is_shared().then(|| asked_at + self.settings.lease_duration)
    }

    /// Gives back what has stopped.
    async fn give_back(&self, shifts: &mut Shifts) -> Result<(), StoreError> {
        let over: Vec<HeldLease> = shifts.values().filter(|shift| shift.is_over()).map(|shift| shift.lease.clone()).collect();
        if over.is_empty() {
            return Ok(());
        }
        self.store.give_back(self.node.id, &over).await?;
        self.metrics.given_back.add(over.len() as u64);
        shifts.retain(|_, shift| !shift.is_over() || !over.contains(&shift.lease));
        Ok(())
    }

    /// How many nodes serve, this one included.
    async fn serving(&self) -> Result<usize, StoreError> {
        let nodes = self.store.nodes().await?;
        let there: Vec<NodeState> = nodes.iter().filter_map(|seen| self.presence(seen)).collect();
        self.metrics.nodes.set(there.len() as u64);
        Ok(there.iter().filter(|state| **state == NodeState::Serving).count())
    }

    fn presence(&self, seen: &NodeSeen) -> Option<NodeState> {
        let is_there = seen.node.id == self.node.id || self.clock.now().since(seen.seen_at) < self.settings.node_timeout;
        is_there.then_some(seen.node.state)
    }

    async fn take(&self, shifts: &mut Shifts, most: usize, tracker: &TaskTracker) -> Result<(), StoreError> {
        let room = most.saturating_sub(shifts.values().filter(|shift| shift.goes_on()).count());
        let missing: Vec<WorkName> = self.names().into_iter().filter(|name| !shifts.contains_key(name)).collect();
        if room == 0 || missing.is_empty() {
            return Ok(());
        }
        let asked_at = Instant::now();
        for lease in self.store.take(self.node.id, &missing, room, self.settings.lease_duration).await? {
            let Some(work) = self.work(&lease.work) else { continue };
            self.metrics.taken.increment();
            tracing::debug!(work.name = %lease.work, lease.generation = lease.generation, "this node does this work now");
            let watch = Watch { settings: self.settings, metrics: Arc::clone(&self.metrics), hurry: Arc::clone(&self.hurry) };
            shifts.insert(lease.work.clone(), Shift::begin(lease, &work, self.until(asked_at), watch, tracker));
        }
        Ok(())
    }

    /// Stops everything and leaves, so that others take over at once.
    async fn end(&self, mut shifts: Shifts) {
        shifts.values_mut().for_each(Shift::stop);
        for shift in shifts.into_values() {
            shift.end(PATIENCE).await;
        }
        if let Err(error) = self.store.leave(self.node.id).await {
            tracing::debug!(error = %error, "the store could not be told that this node leaves; its leases expire");
        }
    }

    fn names(&self) -> Vec<WorkName> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn work(&self, name: &WorkName) -> Option<Work> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Every node that is not forgotten, by when it started.
    pub(crate) async fn report(&self) -> Result<Vec<NodeReport>, StoreError> {
        let leases = self.store.leases().await?;
        let report = |seen: NodeSeen| NodeReport {
            presence: self.presence(&seen).map_or(Presence::Lost, Presence::There),
            works: leases.iter().filter(|lease| lease.node == seen.node.id).map(|lease| lease.work.clone()).collect(),
            is_self: seen.node.id == self.node.id,
            seen_at: seen.seen_at,
            node: seen.node,
        };
        Ok(self.store.nodes().await?.into_iter().map(report).collect())
    }
}
