//! Who is given what: every part of the server, made and joined.

use std::net::SocketAddr;
use std::sync::Arc;

use agents::{ConsumerApi, ConsumerService};
use authz::{Admin, Authorizer};
use domain::{Clock, IdGenerator, SystemClock, SystemIds};
use gateway::{EventReader, Feed, Gateway, PassDelivery};
use hooks::{Dispatcher, Hooks, HooksParts, Sender};
use http_api::{HttpMetrics, Listening, Services};
use inbox::{Inbox, InboxParts, Sweeper};
use intake::{IntakeParts, Promoter, Publisher, ScheduleBell};
use outbound::{Outbound, SystemResolver, Trust};
use store_sqlite::SqliteStore;
use sync::{Logs, Retention};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::doorbells::{GatewayHints, LogTails, TailObservers};
use super::metrics::ProcessMetrics;
use super::ports::{ProcessReadiness, StoreBackup};
use super::totals::Totals;
use super::{ServeError, master_key};
use crate::config::Config;

/// The parts that live as long as the server does.
pub(super) struct Node {
    pub(super) admin: Arc<Admin>,
    pub(super) gateway: Arc<Gateway>,
    pub(super) hooks: Arc<Hooks>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) readiness: Arc<ProcessReadiness>,
    pub(super) store: Arc<SqliteStore>,
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
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let ids: Arc<dyn IdGenerator> = Arc::new(SystemIds);
        let store = open_store(&config, Arc::clone(&clock)).await?;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());

        let authorizer = Authorizer::with_settings(store.clone(), clock.clone(), config.authz());
        let admin = Arc::new(Admin::new(authorizer.clone(), store.clone(), store.clone(), clock.clone(), ids.clone()));
        let tails = Arc::new(LogTails::default());
        let inbox = Inbox::new(InboxParts {
            store: store.clone(),
            transactions: store.clone(),
            authorizer: authorizer.clone(),
            identities: store.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            tails: tails.clone(),
            metrics: Arc::default(),
            settings: config.inbox(),
        });
        let vault = master_key::vault(&config).map_err(ServeError)?;
        let calls = Outbound::new(&config.hooks(), &[listening], Arc::new(SystemResolver::default()), Trust::System);
        let hooks = Hooks::new(HooksParts {
            store: store.clone(),
            transactions: store.clone(),
            inboxes: store.clone(),
            logs: store.clone(),
            tails: tails.clone(),
            authorizer: authorizer.clone(),
            identities: store.clone(),
            outbound: Arc::new(calls.map_err(|error| ServeError::new("calls to hooks cannot be set up", error))?),
            vault: Arc::new(vault),
            clock: clock.clone(),
            ids: ids.clone(),
            metrics: Arc::default(),
            settings: config.hooks(),
        });
        let observers = Arc::new(TailObservers { authorizer: authorizer.clone(), inbox: inbox.clone(), hooks: hooks.clone() });
        let logs = Logs::start(store.clone(), observers, config.sync(), tasks.clone(), stop.child_token());
        tails.join(logs.clone());
        store.set_listener(logs.clone());

        let intake = IntakeParts {
            authorizer: authorizer.clone(),
            append: store.clone(),
            transactions: store.clone(),
            schedule: store.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            bell: ScheduleBell::default(),
            metrics: Arc::default(),
            settings: config.intake(),
        };
        let publisher = Arc::new(Publisher::new(intake.clone()));

        let service = Arc::new(ConsumerService::new(store.clone(), store.clone(), authorizer.clone(), config.agents()));
        let gateway = Gateway::new(gateway::Parts {
            authorizer: authorizer.clone(),
            consumers: service,
            logs: logs.clone(),
            hook: Arc::new(PassDelivery),
            hints: Arc::new(GatewayHints(inbox.clone())),
            clock: clock.clone(),
            ids: ids.clone(),
            settings: config.gateway(),
            agents: config.agents(),
        });
        let feed = Arc::new(Feed::new(gateway.clone(), store.clone()));
        let consumers = Arc::new(ConsumerApi::new(store.clone(), store.clone(), authorizer.clone(), feed, config.agents()));
        let retention = Retention::new(store.clone(), store.clone(), clock.clone(), config.sync());

        let totals = Arc::<Totals>::default();
        let process_metrics = Arc::new(ProcessMetrics {
            store: store.clone(),
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
        tasks.spawn(totals.clone().run(store.clone(), config.inbox.totals_interval, stop.child_token()));
        retention.start(&tasks, stop.child_token());
        let (promoter, token) = (Promoter::new(intake), stop.child_token());
        tasks.spawn(async move { promoter.run(token).await });
        let (sweeper, token) = (Sweeper::new(inbox.clone()), stop.child_token());
        tasks.spawn(async move { sweeper.run(token).await });
        let (dispatcher, token) = (Dispatcher::new(hooks.clone()), stop.child_token());
        tasks.spawn(async move { dispatcher.run(token).await });
        let (sender, token) = (Sender::new(hooks.clone()), stop.child_token());
        tasks.spawn(async move { sender.run(token).await });
        let (upkeep, token) = (authorizer.clone(), stop.child_token());
        tasks.spawn(async move { upkeep.run(token).await });

        Ok(Self {
            readiness: Arc::new(ProcessReadiness::new(store.clone(), logs)),
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
            process_metrics,
            clock,
            ids,
        })
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
            readiness: self.readiness.clone(),
            backup: Arc::new(StoreBackup::new(self.store.clone(), self.clock.clone())),
            metrics: metrics.clone(),
            metric_sources: vec![self.process_metrics.clone()],
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

/// Opens the store on a thread that may block: it reads, checks and perhaps migrates.
async fn open_store(config: &Config, clock: Arc<dyn Clock>) -> Result<Arc<SqliteStore>, ServeError> {
    let (directory, options) = (config.data.dir.clone(), config.store());
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(directory, options, clock)).await;
    let opened = opened.map_err(|error| ServeError::new("the store cannot be opened", error))?;
    opened.map_err(|error| ServeError(error.to_string()))
}
