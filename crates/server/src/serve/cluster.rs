//! How this process takes its place among the nodes over a shared store: hints, shared work, the listing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::cluster::{Cluster, ClusterParts, ClusterStore, Node, NodeState, SoleNode, Tenure, WorkName};
use domain::{Clock, IdGenerator, NodeId};
use hint_nats::NatsRelay;
use hooks::{GroupLeases, GroupNumber, Hooks};
use http_api::{Metric, MetricSource, Samples};
use sync::{CommitListener, HintBus, HintExchange, HintListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ServeError;
use crate::config::Config;
use crate::store::Engine;

/// Who this process is among the nodes.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) id: NodeId,
    pub(super) name: String,
    address: SocketAddr,
}

impl Identity {
    /// A new one for each start.
    pub(super) fn new(config: &Config, listening: SocketAddr, ids: &dyn IdGenerator) -> Self {
        let name = config.cluster.node_name.trim();
        let name = if name.is_empty() { listening.to_string() } else { name.to_owned() };
        Self { id: NodeId::new(ids.uuid()), name, address: listening }
    }
}

/// The hints of this process; none over a store that it uses alone.
#[derive(Clone)]
pub(super) struct Hints(Option<Arc<HintExchange>>);

impl Hints {
    /// Nothing is carried before [`Hints::carry`].
    pub(super) fn new(config: &Config, engine: &Engine, node: &Identity) -> Self {
        Self(matches!(engine, Engine::Shared(_)).then(|| HintExchange::new(node.id, config.hints())))
    }

    /// How the parts tell other nodes.
    pub(super) fn bus(&self) -> Option<Arc<dyn HintBus>> {
        self.0.clone().map(|exchange| -> Arc<dyn HintBus> { exchange })
    }

    /// The counters.
    pub(super) fn exchange(&self) -> Option<Arc<HintExchange>> {
        self.0.clone()
    }

    /// Who is told of this process's commits: `own`, and the other nodes.
    pub(super) fn announcing(&self, own: Arc<dyn CommitListener>) -> Arc<dyn CommitListener> {
        match self.bus() {
            Some(bus) => Arc::new(sync::Announcer::new(own, bus)),
            None => own,
        }
    }

    /// From now on `listener` hears other nodes.
    pub(super) fn listen<L: HintListener + 'static>(&self, listener: &Arc<L>) {
        if let Some(exchange) = &self.0 {
            let listener: Arc<dyn HintListener> = listener.clone();
            exchange.listen(Arc::downgrade(&listener));
        }
    }

    /// Carries hints between this node and the others until `stop`.
    ///
    /// # Errors
    /// When an address cannot be one.
    pub(super) fn carry(
        &self,
        config: &Config,
        engine: &Engine,
        node: &Identity,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<(), ServeError> {
        let (Some(exchange), Engine::Shared(store)) = (&self.0, engine) else { return Ok(()) };
        match config.nats_hints(&node.name) {
            Some(options) => {
                NatsRelay::start(&options, exchange.clone(), tasks, stop.clone()).map_err(|error| ServeError(error.to_string()))
            }
            None => {
                let carried = store.carry_hints(exchange, &config.database_hints(), tasks, stop);
                carried.map_err(|error| ServeError(format!("database.listen_url: {error}")))
            }
        }
    }
}

/// This process among the nodes. Work is added before the cluster runs.
pub(super) fn cluster(config: &Config, engine: &Engine, clock: &Arc<dyn Clock>, identity: &Identity) -> Arc<Cluster> {
    let store: Arc<dyn ClusterStore> = match engine {
        Engine::Embedded(_) => Arc::new(SoleNode::new(clock.clone())),
        Engine::Shared(store) => store.clone(),
    };
    let node = Node {
        id: identity.id,
        name: identity.name.clone(),
        address: identity.address.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: clock.now(),
        state: NodeState::Serving,
    };
    Cluster::new(ClusterParts { store, clock: clock.clone(), node, settings: config.cluster() })
}

/// The name of a piece of work.
///
/// # Errors
/// Only for a name that is none: a fault of this program.
pub(super) fn work(name: &str) -> Result<WorkName, ServeError> {
    WorkName::parse(name).map_err(|error| ServeError::new("a name of background work", error))
}

/// The groups of tenants whose hooks this node works for: those whose lease it holds.
#[derive(Debug, Default)]
pub(super) struct HookGroups {
    held: Mutex<BTreeMap<GroupNumber, Tenure>>,
}

impl HookGroups {
    /// Adds the groups to the work that nodes share.
    pub(super) fn share(self: &Arc<Self>, cluster: &Cluster, hooks: &Arc<Hooks>, groups: &[GroupNumber]) -> Result<(), ServeError> {
        for group in groups.iter().copied() {
            let (leases, hooks) = (Arc::clone(self), Arc::clone(hooks));
            cluster.share_work(work(&format!("hooks.group_{}", group.0))?, move |tenure| {
                let (leases, hooks) = (Arc::clone(&leases), Arc::clone(&hooks));
                async move {
                    leases.with(|held| held.insert(group, tenure.clone()));
                    let _leaving = Leaving { leases: &leases, group };
                    tenure.stop.cancelled().await;
                    leases.with(|held| held.remove(&group));
                    // What is on the wire is nobody else's to repeat until it is written.
                    hooks.quiet(group).await;
                }
            });
        }
        Ok(())
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<GroupNumber, Tenure>) -> T) -> T {
        act(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Lets go of a group also when the work is cut off.
struct Leaving<'a> {
    leases: &'a HookGroups,
    group: GroupNumber,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.leases.with(|held| held.remove(&self.group));
    }
}

impl GroupLeases for HookGroups {
    fn held(&self) -> Vec<GroupNumber> {
        self.with(|held| held.iter().filter(|(_, tenure)| !tenure.remaining().is_zero()).map(|(group, _)| *group).collect())
    }

    fn remaining(&self, group: GroupNumber) -> Duration {
        self.with(|held| held.get(&group).map_or(Duration::ZERO, Tenure::remaining))
    }
}

/// The counters of this process's place among the nodes.
#[derive(Debug)]
pub(super) struct ClusterMetrics {
    cluster: Arc<Cluster>,
    exchange: Option<Arc<HintExchange>>,
}

impl ClusterMetrics {
    /// Over these parts.
    pub(super) fn new(cluster: Arc<Cluster>, hints: &Hints) -> Self {
        Self { cluster, exchange: hints.exchange() }
    }
}

impl MetricSource for ClusterMetrics {
    fn collect(&self, samples: &mut Samples) {
        let now = self.cluster.metrics();
        samples.gauge(Metric::Nodes, &[], now.nodes.get() as f64);
        samples.gauge(Metric::WorkHeld, &[], now.held.get() as f64);
        for (outcome, count) in [("taken", &now.taken), ("given_back", &now.given_back), ("lost", &now.lost), ("cut_off", &now.cut_off)] {
            samples.counter(Metric::WorkLeases, &[("outcome", outcome)], count.get());
        }
        let Some(exchange) = &self.exchange else { return };
        let now = exchange.metrics();
        for (outcome, count) in
            [("told", &now.told), ("merged", &now.merged), ("dropped", &now.dropped), ("heard", &now.heard), ("unknown", &now.unknown)]
        {
            samples.counter(Metric::Hints, &[("outcome", outcome)], count.get());
        }
        let (sends, failed) = (now.sends.get(), now.send_failures.get());
        samples.counter(Metric::HintSends, &[("outcome", "done")], sends.saturating_sub(failed));
        samples.counter(Metric::HintSends, &[("outcome", "failed")], failed);
        samples.gauge(Metric::HintsListening, &[], now.listening.get() as f64);
        samples.counter(Metric::HintReconnects, &[], now.reconnects.get());
    }
}
