//! The store that the configuration names, as the ports that the parts ask for.

use std::sync::Arc;

use agents::CursorStore;
use authz::{AdminTx, IdentityStore};
use domain::{Clock, SystemClock, Transactions};
use hooks::{HookStore, HookTx};
use inbox::{InboxStore, InboxTx};
use intake::{PublishTx, ScheduleStore};
use store_postgres::{DatabaseClock, PostgresOptions, PostgresStore};
use store_sqlite::SqliteStore;
use sync::{Append, CommitListener, LogStore};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;

/// Every store port, each as its module asks for it.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) identities: Arc<dyn IdentityStore>,
    pub(crate) administration: Arc<dyn Transactions<dyn AdminTx>>,
    pub(crate) logs: Arc<dyn LogStore>,
    pub(crate) append: Arc<dyn Append>,
    pub(crate) publishing: Arc<dyn Transactions<dyn PublishTx>>,
    pub(crate) schedule: Arc<dyn ScheduleStore>,
    pub(crate) cursors: Arc<dyn CursorStore>,
    pub(crate) inboxes: Arc<dyn InboxStore>,
    pub(crate) inbox_changes: Arc<dyn Transactions<dyn InboxTx>>,
    pub(crate) hooks: Arc<dyn HookStore>,
    pub(crate) hook_changes: Arc<dyn Transactions<dyn HookTx>>,
}

impl Ports {
    fn of<S>(store: &Arc<S>) -> Self
    where
        S: IdentityStore + LogStore + Append + ScheduleStore + CursorStore + InboxStore + HookStore + 'static,
        S: Transactions<dyn AdminTx> + Transactions<dyn PublishTx> + Transactions<dyn InboxTx> + Transactions<dyn HookTx>,
    {
        Self {
            identities: store.clone(),
            administration: store.clone(),
            logs: store.clone(),
            append: store.clone(),
            publishing: store.clone(),
            schedule: store.clone(),
            cursors: store.clone(),
            inboxes: store.clone(),
            inbox_changes: store.clone(),
            hooks: store.clone(),
            hook_changes: store.clone(),
        }
    }
}

/// The engine under the ports: what an engine can do that no module asks for.
#[derive(Clone, Debug)]
pub(crate) enum Engine {
    /// One SQLite database in the data directory, which this process alone has open.
    Embedded(Arc<SqliteStore>),
    /// A PostgreSQL database, which any number of processes share.
    Shared(Arc<PostgresStore>),
}

/// An open store.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) ports: Ports,
    pub(crate) engine: Engine,
    /// The time that decides: leases, deadlines, what is due.
    pub(crate) clock: Arc<dyn Clock>,
    following: Following,
}

/// What follows the database's clock.
#[derive(Clone, Default)]
struct Following {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Following {
    async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Makes a directory that only this user can read.
fn private_directory(path: &std::path::Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

impl Store {
    /// Opens the store that the configuration names. `node` is this process's name among those that share it.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(crate) async fn open(config: &Config, node: &str) -> Result<Self, String> {
        match config.shared_store(node) {
            Some(options) => Self::shared(config, options).await,
            None => Self::embedded(config).await,
        }
    }

    async fn embedded(config: &Config) -> Result<Self, String> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (directory, options, own) = (config.data.dir.clone(), config.store(), Arc::clone(&clock));
        // On a thread that may block: it reads, checks and perhaps migrates.
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(directory, options, own)).await;
        let store = opened.map_err(|error| format!("the store cannot be opened: {error}"))?.map_err(|error| error.to_string())?;
        Ok(Self { ports: Ports::of(&store), engine: Engine::Embedded(store), clock, following: Following::default() })
    }

    async fn shared(config: &Config, options: PostgresOptions) -> Result<Self, String> {
        // What a node keeps for itself lies there: the owner's token, and the master key when it is given none.
        let directory = &config.data.dir;
        private_directory(directory).map_err(|error| format!("the data directory {} cannot be made: {error}", directory.display()))?;
        let following = Following::default();
        let clock = DatabaseClock::start(&options, &following.tasks, following.stop.clone()).await.map_err(|error| error.to_string())?;
        match PostgresStore::connect(options, clock.clone()).await {
            Ok(store) => Ok(Self { ports: Ports::of(&store), engine: Engine::Shared(store), clock, following }),
            Err(error) => {
                following.end().await;
                Err(error.to_string())
            }
        }
    }

    /// From now on `listener` is told of this process's commits.
    pub(crate) fn set_listener(&self, listener: Arc<dyn CommitListener>) {
        match &self.engine {
            Engine::Embedded(store) => store.set_listener(listener),
            Engine::Shared(store) => store.set_listener(listener),
        }
    }

    /// Finishes what waits and lets go of the store.
    pub(crate) async fn close(&self) {
        match &self.engine {
            Engine::Embedded(store) => store.close().await,
            Engine::Shared(store) => store.close().await,
        }
        self.following.end().await;
    }
}
