//! A server over the store in memory.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use agents::{ConsumerApi, ConsumerService};
use async_trait::async_trait;
use authz::{Admin, Authorizer, Permission, PrincipalKind, Role};
use cluster::{Cluster, ClusterParts, Node, NodeState, Nodes, SoleNode, WorkName};
use domain::{Clock, IdGenerator, NodeId, SystemClock, SystemIds};
use doorstep_http::{Backup, BackupError, HttpMetrics, Listening, NotReady, Readiness, Services, Settings, router, serve};
use gateway::{EventReader, Feed, Gateway, PassDelivery};
use hooks::{Hooks, HooksParts, MasterKey, MasterVault, NoVault, Vault};
use inbox::{Inbox, InboxParts};
use intake::{IntakeParts, Publisher, ScheduleBell};
use protocol::admin::BackupReport;
use sync::Logs;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Answer, HookRows, Inboxes, Memory, Receivers, Wire};

/// What tests change.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) http: Settings,
    pub(crate) gateway: gateway::Settings,
    pub(crate) agents: agents::Settings,
    pub(crate) inbox: inbox::Settings,
    pub(crate) hooks: hooks::Settings,
    /// The server has no master key.
    pub(crate) is_without_vault: bool,
}

/// A running server with an owner `sam`, an app `shop` and an agent `alpha`; both of these may read and post in `support`.
pub(crate) struct World {
    pub(crate) memory: Arc<Memory>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) inboxes: Arc<Inboxes>,
    pub(crate) hooks: Arc<HookRows>,
    pub(crate) receivers: Arc<Receivers>,
    /// The same routes, without a socket.
    pub(crate) router: axum::Router,
    pub(crate) address: SocketAddr,
    pub(crate) owner: String,
    pub(crate) app: String,
    pub(crate) agent: String,
    pub(crate) readiness: Arc<Switch>,
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    _stop: tokio_util::sync::DropGuard,
}

/// The one node over an embedded store, with a piece of work.
fn only_node(authorizer: &Arc<Authorizer>, clock: &Arc<dyn Clock>, tasks: &TaskTracker, stop: &CancellationToken) -> Arc<Nodes> {
    let node = Node {
        id: NodeId::new(uuid::Uuid::from_u128(7)),
        name: "here".to_owned(),
        address: "127.0.0.1:7420".to_owned(),
        version: "1.2.3".to_owned(),
        started_at: clock.now(),
        state: NodeState::Serving,
    };
    let store = Arc::new(SoleNode::new(clock.clone()));
    let cluster = Cluster::new(ClusterParts { store, clock: clock.clone(), node, settings: cluster::Settings::default() });
    cluster.share_work(WorkName::parse("inbox.sweeper").unwrap(), |tenure| async move { tenure.stop.cancelled().await });
    tasks.spawn(cluster.clone().run(tasks.clone(), stop.clone()));
    Arc::new(Nodes::new(cluster, authorizer.clone()))
}

/// Readiness that a test turns.
#[derive(Default)]
pub(crate) struct Switch(pub(crate) Mutex<Vec<NotReady>>);

#[async_trait]
impl Readiness for Switch {
    async fn check(&self) -> Result<(), Vec<NotReady>> {
        let missing = self.0.lock().unwrap().clone();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

struct NoBackup;

#[async_trait]
impl Backup for NoBackup {
    async fn backup(&self, path: &str) -> Result<BackupReport, BackupError> {
        Err(if path.starts_with('/') { BackupError::Running } else { BackupError::Path("an absolute path".to_owned()) })
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let (clock, ids): (Arc<dyn Clock>, Arc<dyn IdGenerator>) = (Arc::new(SystemClock::new()), Arc::new(SystemIds));
        let memory = Memory::new();
        let owner = memory.principal("sam", PrincipalKind::Person, Role::Owner);
        let app = memory.principal("shop", PrincipalKind::App, Role::Member);
        let agent = memory.principal("alpha", PrincipalKind::Agent, Role::Member);
        for principal in ["shop", "alpha"] {
            memory.grant(principal, "support", Permission::Post);
        }
        let (core, stop) = (TaskTracker::new(), CancellationToken::new());
        let authorizer = Authorizer::new(memory.clone(), clock.clone());
        let logs = Logs::start(memory.clone(), authorizer.clone(), sync::Settings::default(), core.clone(), stop.clone());
        memory.set_listener(logs.clone());
        let service = ConsumerService::new(memory.clone(), memory.clone(), authorizer.clone(), options.agents);
        let gateway = Gateway::new(gateway::Parts {
            authorizer: authorizer.clone(),
            logs,
            consumers: Arc::new(service),
            hook: Arc::new(PassDelivery),
            hints: Arc::new(gateway::NoHints),
            nodes: None,
            clock: clock.clone(),
            ids: ids.clone(),
            settings: options.gateway,
            agents: options.agents,
        });
        gateway.run(&core, &stop);
        let feed = Arc::new(Feed::new(gateway.clone(), memory.clone()));
        let intake = IntakeParts {
            authorizer: authorizer.clone(),
            append: memory.clone(),
            transactions: memory.clone(),
            schedule: memory.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            bell: ScheduleBell::default(),
            metrics: Arc::default(),
            settings: intake::Settings::default(),
        };
        let inboxes = Inboxes::new(memory.clone());
        let inbox = Inbox::new(InboxParts {
            store: inboxes.clone(),
            transactions: inboxes.clone(),
            authorizer: authorizer.clone(),
            identities: memory.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            tails: inboxes.clone(),
            metrics: Arc::default(),
            settings: options.inbox,
        });
        inboxes.hang(inbox.bells());
        let vault: Arc<dyn Vault> = if options.is_without_vault {
            Arc::new(NoVault)
        } else {
            Arc::new(MasterVault::new(MasterKey::new(&[7; 32]).unwrap(), Vec::new()))
        };
        let (hook_rows, receivers) = (HookRows::new(memory.clone()), Arc::<Receivers>::default());
        let hooks = Hooks::new(HooksParts {
            store: hook_rows.clone(),
            transactions: hook_rows.clone(),
            inboxes: inboxes.clone(),
            logs: memory.clone(),
            tails: inboxes.clone(),
            authorizer: authorizer.clone(),
            identities: memory.clone(),
            outbound: receivers.clone(),
            vault,
            clock: clock.clone(),
            ids: ids.clone(),
            metrics: Arc::default(),
            settings: options.hooks,
        });
        let (tasks, metrics, shutdown) = (TaskTracker::new(), Arc::new(HttpMetrics::new()), CancellationToken::new());
        let readiness = Arc::new(Switch::default());
        let services = Services {
            nodes: only_node(&authorizer, &clock, &core, &stop),
            admin: Arc::new(Admin::new(authorizer.clone(), memory.clone(), memory.clone(), clock.clone(), ids.clone())),
            publisher: Arc::new(Publisher::new(intake)),
            consumers: Arc::new(ConsumerApi::new(memory.clone(), memory.clone(), authorizer.clone(), feed, options.agents)),
            events: EventReader::new(gateway.clone()),
            inbox: inbox.clone(),
            hooks,
            gateway: gateway.clone(),
            readiness: readiness.clone(),
            backup: Arc::new(NoBackup),
            metrics: metrics.clone(),
            metric_sources: Vec::new(),
            tasks: tasks.clone(),
            settings: options.http.clone(),
            authorizer,
            clock,
            ids,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listening = Listening { listener, settings: options.http, metrics, tasks: tasks.clone(), shutdown: shutdown.clone() };
        let router = router(services);
        core.spawn(serve(listening, router.clone()));
        Self {
            memory,
            gateway,
            inbox,
            inboxes,
            hooks: hook_rows,
            receivers,
            router,
            address,
            owner,
            app,
            agent,
            readiness,
            tasks,
            shutdown,
            _stop: stop.drop_guard(),
        }
    }

    pub(crate) async fn wire(&self) -> Wire {
        Wire::connect(self.address).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn call(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut wire = self.wire().await;
        wire.request(method, target, headers, body).await;
        wire.answer().await
    }

    pub(crate) async fn get(&self, token: &str, target: &str) -> Answer {
        self.call("GET", target, &[("authorization", &format!("Bearer {token}"))], b"").await
    }

    pub(crate) async fn delete(&self, token: &str, target: &str) -> Answer {
        self.call("DELETE", target, &[("authorization", &format!("Bearer {token}"))], b"").await
    }

    pub(crate) async fn patch(&self, token: &str, target: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        self.call("PATCH", target, &[("authorization", &bearer), ("content-type", "application/json")], body.as_bytes()).await
    }

    /// A creating request under a key.
    pub(crate) async fn post_once(&self, token: &str, target: &str, key: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", key)];
        self.call("POST", target, &headers, body.as_bytes()).await
    }

    pub(crate) async fn put(&self, token: &str, target: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        self.call("PUT", target, &[("authorization", &bearer), ("content-type", "application/json")], body.as_bytes()).await
    }

    pub(crate) async fn post(&self, token: &str, target: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        self.call("POST", target, &[("authorization", &bearer), ("content-type", "application/json")], body.as_bytes()).await
    }
}
