//! Who is given what: every part of the server, made and joined.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::cluster::{Cluster, ClusterStore, Nodes};
use agents::{ConsumerApi, ConsumerService};
use authz::{Admin, Authorizer};
use domain::{Clock, IdGenerator, SystemIds};
use gateway::{EventReader, Feed, Gateway, PassDelivery};
use hooks::{Dispatcher, HookError, Hooks, HooksParts, Sender};
use http_api::{HttpMetrics, Listening, Services};
use inbox::{Inbox, InboxParts, Sweeper};
use intake::{IntakeParts, Promoter, Publisher, ScheduleBell};
use outbound::{Outbound, SystemResolver, Trust};
use sync::{Logs, Retention};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cluster::{ClusterMetrics, Hints, HookGroups, Identity, cluster, work};
use super::doorbells::{GatewayHints, LogTails, TailObservers};
use super::metrics::ProcessMetrics;
use super::ports::{ProcessReadiness, StoreBackup};
use super::totals::Totals;
use super::{ServeError, master_key, staging};
use crate::config::Config;
use crate::store::{Engine, Store};

/// The parts that live as long as the server does.
pub(super) struct Node {
    pub(super) admin: Arc<Admin>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) gateway: Arc<Gateway>,
    pub(super) hooks: Arc<Hooks>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) readiness: Arc<ProcessReadiness>,
    pub(super) store: Store,
    /// Ends every background task.
    pub(super) stop: CancellationToken,
    /// Owns every background task.
    pub(super) tasks: TaskTracker,
    config: Config,
    publisher: Arc<Publisher>,
    consumers: Arc<ConsumerApi>,
    events: EventReader,
    authorizer: Arc<Authorizer>,
    process_metrics: Arc<ProcessMetrics>,
    cluster_metrics: Arc<ClusterMetrics>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
}

/// What accepts and answers.
pub(super) struct Accepting {
    /// Owns the accept loop and the connections.
    pub(super) tasks: TaskTracker,
}

impl Node {
    /// Opens the store, makes every part, and starts the background tasks.
    pub(super) async fn start(config: Config, listening: SocketAddr) -> Result<Self, ServeError> {
        let ids: Arc<dyn IdGenerator> = Arc::new(SystemIds);
        let identity = Identity::new(&config, listening, &*ids);
        let store = Store::open(&config, &identity.name).await.map_err(ServeError)?;
        let (ports, clock) = (store.ports.clone(), store.clock.clone());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let cluster = cluster(&config, &store.engine, &clock, &identity);
        let nodes = Hints::new(&config, &store.engine, &identity);

        let authorizer = Authorizer::with_settings(ports.identities.clone(), clock.clone(), config.authz());
        let admin =
            Arc::new(Admin::new(authorizer.clone(), ports.identities.clone(), ports.administration.clone(), clock.clone(), ids.clone()));
        let tails = Arc::new(LogTails::default());
        let inbox_parts = InboxParts {
            store: ports.inboxes.clone(),
            transactions: ports.inbox_changes.clone(),
            authorizer: authorizer.clone(),
            identities: ports.identities.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            tails: tails.clone(),
            metrics: Arc::default(),
            settings: config.inbox(),
        };
        let inbox = if others_serve(&store, &config).await { Inbox::beside_others(inbox_parts) } else { Inbox::new(inbox_parts) };
        let vault = master_key::vault(&config).map_err(ServeError)?;
        let calls = Outbound::new(&config.hooks(), &[listening], Arc::new(SystemResolver::default()), Trust::System);
        let groups = Arc::<HookGroups>::default();
        let hooks = Hooks::sharing(
            HooksParts {
                store: ports.hooks.clone(),
                transactions: ports.hook_changes.clone(),
                inboxes: ports.inboxes.clone(),
                logs: ports.logs.clone(),
                tails: tails.clone(),
                authorizer: authorizer.clone(),
                identities: ports.identities.clone(),
                outbound: Arc::new(calls.map_err(|error| ServeError::new("calls to hooks cannot be set up", error))?),
                vault: Arc::new(vault),
                clock: clock.clone(),
                ids: ids.clone(),
                metrics: Arc::default(),
                settings: config.hooks(),
            },
            groups.clone(),
        );
        if let Engine::Shared(_) = store.engine {
            hooks.check_master_key().await.map_err(|error| ServeError(unopened(&error)))?;
        }
        let observers = Arc::new(TailObservers { authorizer: authorizer.clone(), inbox: inbox.clone(), hooks: hooks.clone() });
        let logs = Logs::start(ports.logs.clone(), observers, config.sync(), tasks.clone(), stop.child_token());
        tails.join(logs.clone());
        store.set_listener(nodes.announcing(logs.clone()));
        nodes.listen(&logs);

        let intake = IntakeParts {
            authorizer: authorizer.clone(),
            append: ports.append.clone(),
            transactions: ports.publishing.clone(),
            schedule: ports.schedule.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            bell: ScheduleBell::default(),
            metrics: Arc::default(),
            settings: config.intake(),
        };
        let publisher = Arc::new(staging::publisher(&store, &intake));
        staging::share(&cluster, &store, &intake)?;

        let service = Arc::new(ConsumerService::new(ports.cursors.clone(), ports.identities.clone(), authorizer.clone(), config.agents()));
        let gateway = Gateway::new(gateway::Parts {
            authorizer: authorizer.clone(),
            consumers: service,
            logs: logs.clone(),
            hook: Arc::new(PassDelivery),
            hints: Arc::new(GatewayHints(inbox.clone())),
            nodes: nodes.bus(),
            clock: clock.clone(),
            ids: ids.clone(),
            settings: config.gateway(),
            agents: config.agents(),
        });
        let feed = Arc::new(Feed::new(gateway.clone(), ports.cursors.clone()));
        let consumers =
            Arc::new(ConsumerApi::new(ports.cursors.clone(), ports.identities.clone(), authorizer.clone(), feed, config.agents()));
        let retention = Retention::new(ports.logs.clone(), ports.identities.clone(), clock.clone(), config.sync());

        let totals = Arc::<Totals>::default();
        let process_metrics = Arc::new(ProcessMetrics {
            engine: store.engine.clone(),
            gateway: gateway.clone(),
            logs: logs.clone(),
            retention: retention.clone(),
            authorizer: authorizer.clone(),
            intake: intake.metrics.clone(),
            inbox: inbox.clone(),
            totals: totals.clone(),
            hooks: hooks.clone(),
            clock: clock.clone(),
            started_at: clock.now(),
        });
        gateway.run(&tasks, &stop);
        nodes.listen(&gateway);
        nodes.carry(&config, &store.engine, &identity, &tasks, &stop)?;
        tasks.spawn(totals.clone().run(ports.inboxes, ports.hooks.clone(), config.inbox.totals_interval, stop.child_token()));
        groups.share(&cluster, &hooks, &ports.hooks.groups().await.map_err(|error| ServeError::new("the groups of hooks", error))?)?;
        cluster.share_work(work("sync.retention")?, move |tenure| {
            let retention = retention.clone();
            async move { retention.run(tenure.stop).await }
        });
        cluster.share_work(work("intake.promoter")?, move |tenure| {
            let promoter = Promoter::new(intake.clone());
            async move { promoter.run(tenure.stop).await }
        });
        let swept = inbox.clone();
        cluster.share_work(work("inbox.sweeper")?, move |tenure| {
            let sweeper = Sweeper::new(swept.clone());
            async move { sweeper.run(tenure.stop).await }
        });
        tasks.spawn(cluster.clone().run(tasks.clone(), stop.child_token()));
        let (dispatcher, token) = (Dispatcher::new(hooks.clone()), stop.child_token());
        tasks.spawn(async move { dispatcher.run(token).await });
        let (sender, token) = (Sender::new(hooks.clone()), stop.child_token());
        tasks.spawn(async move { sender.run(token).await });
        let (upkeep, token) = (authorizer.clone(), stop.child_token());
        tasks.spawn(async move { upkeep.run(token).await });

        Ok(Self {
            readiness: Arc::new(ProcessReadiness::new(ports.logs, logs)),
            events: EventReader::new(gateway.clone()),
            admin,
            gateway,
            hooks,
            inbox,
            store,
            stop,
            tasks,
            config,
            publisher,
            consumers,
            authorizer,
            cluster_metrics: Arc::new(ClusterMetrics::new(cluster.clone(), &nodes)),
            process_metrics,
            cluster,
            clock,
            ids,
        })
    }

    /// Over how long connections are asked to leave when the process stops. There is nobody to go to without other nodes.
    pub(super) fn drain_spread(&self) -> Duration {
        match self.store.engine {
            Engine::Embedded(_) => Duration::ZERO,
            Engine::Shared(_) => self.config.shutdown.drain_spread.min(self.config.shutdown.total_timeout / 2),
        }
    }

    /// Accepts on `listener` until `shutdown`.
    pub(super) fn accept(&self, listener: TcpListener, shutdown: CancellationToken) -> Accepting {
        let (tasks, metrics) = (TaskTracker::new(), Arc::new(HttpMetrics::new()));
        let services = Services {
            authorizer: self.authorizer.clone(),
            admin: self.admin.clone(),
            publisher: self.publisher.clone(),
            consumers: self.consumers.clone(),
            events: self.events.clone(),
            gateway: self.gateway.clone(),
            inbox: self.inbox.clone(),
            hooks: self.hooks.clone(),
            nodes: Arc::new(Nodes::new(self.cluster.clone(), self.authorizer.clone())),
            readiness: self.readiness.clone(),
            backup: Arc::new(StoreBackup::new(self.store.engine.clone(), self.clock.clone())),
            metrics: metrics.clone(),
            metric_sources: vec![self.process_metrics.clone(), self.cluster_metrics.clone()],
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            tasks: tasks.clone(),
            settings: self.config.http(),
        };
        let listening = Listening { listener, settings: self.config.http(), metrics, tasks: tasks.clone(), shutdown };
        let router = http_api::router(services);
        tasks.spawn(async move { http_api::serve(listening, router).await });
        Accepting { tasks }
    }
}

/// Why what other nodes have sealed cannot be opened here.
fn unopened(error: &HookError) -> String {
    match error {
        HookError::Secrets(_) => {
            "the secrets in the database are sealed with another master key than this node's: give every node the same one, in \
            security.master_key_file or as the file master-key in its data directory"
                .to_owned()
        }
        other => format!("the secrets in the database cannot be looked at: {other}"),
    }
}

/// Whether another node heard of workers while this one was not there.
async fn others_serve(store: &Store, config: &Config) -> bool {
    let Engine::Shared(shared) = &store.engine else { return false };
    let since = store.clock.now().minus(config.cluster().node_timeout);
    ClusterStore::nodes(&**shared).await.is_ok_and(|nodes| nodes.iter().any(|seen| seen.seen_at > since))
}
