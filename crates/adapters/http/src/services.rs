//! What the routes stand on: the use cases of the core, and the few ports that the process itself implements.

use std::ops::Deref;
use std::sync::Arc;

use agents::ConsumerApi;
use async_trait::async_trait;
use authz::{Admin, Authorizer};
use bytes::Bytes;
use cluster::Nodes;
use domain::{Clock, IdGenerator, StoreError};
use gateway::{EventReader, Gateway};
use hooks::Hooks;
use inbox::Inbox;
use intake::Publisher;
use protocol::admin::BackupReport;
use tokio_util::task::TaskTracker;

use crate::Settings;
use crate::metrics::{HttpMetrics, MetricSource};

/// Everything that the routes need.
#[expect(missing_debug_implementations, reason = "ports have no debug form")]
pub struct Services {
    /// Who calls, and whether they may.
    pub authorizer: Arc<Authorizer>,
    /// The administration.
    pub admin: Arc<Admin>,
    /// How events enter.
    pub publisher: Arc<Publisher>,
    /// The REST use cases of consumers.
    pub consumers: Arc<ConsumerApi>,
    /// Reading for people and apps.
    pub events: EventReader,
    /// Claimable work, and who is told of it.
    pub inbox: Arc<Inbox>,
    /// Whom to ring that has no session.
    pub hooks: Arc<Hooks>,
    /// What WebSockets are handed to.
    pub gateway: Arc<Gateway>,
    /// The server processes over the store.
    pub nodes: Arc<Nodes>,
    /// Whether the process can serve.
    pub readiness: Arc<dyn Readiness>,
    /// Online backups.
    pub backup: Arc<dyn Backup>,
    /// What the HTTP interface counts; the same that `serve` is given.
    pub metrics: Arc<HttpMetrics>,
    /// What else `/metrics` shows.
    pub metric_sources: Vec<Arc<dyn MetricSource>>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Identities.
    pub ids: Arc<dyn IdGenerator>,
    /// Who owns the tasks of WebSockets, and what goes on for a request whose client is gone.
    pub tasks: TaskTracker,
    /// Bounds.
    pub settings: Settings,
}

/// A part of the process without which it cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReady {
    /// Which part, in a word for people and scripts: `store`, `migrations`, `tail`, `draining`.
    pub part: &'static str,
}

/// Whether the process can serve: store reachable, migrations current, tails alive, not draining.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Answers at once or within a second.
    ///
    /// # Errors
    /// The parts that are not ready, at least one.
    async fn check(&self) -> Result<(), Vec<NotReady>>;
}

/// Why no backup was made.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackupError {
    /// The path is not absolute, its folder is not there, or it exists already. The text is for the operator who asked.
    #[error("{0}")]
    Path(String),
    /// Another backup is running.
    #[error("a backup is running already")]
    Running,
    /// The store is not this server's alone: its database has tools of its own.
    #[error("the server uses a shared database; back it up with the database's own tools")]
    NotHere,
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes online backups.
#[async_trait]
pub trait Backup: Send + Sync {
    /// Writes a copy that is consistent as of one instant to `path`, which must not exist. Answers when it is durable.
    ///
    /// # Errors
    /// [`BackupError`]; nothing is left behind at `path` then.
    async fn backup(&self, path: &str) -> Result<BackupReport, BackupError>;
}

/// The routes' state: the services, and what is made of them once.
#[derive(Clone)]
pub(crate) struct ApiState(Arc<Inner>);

pub(crate) struct Inner {
    services: Services,
    /// The OpenAPI document as it is served.
    pub(crate) openapi: Bytes,
    /// The AsyncAPI document as it is served.
    pub(crate) asyncapi: Bytes,
}

impl ApiState {
    pub(crate) fn new(services: Services, openapi: Bytes, asyncapi: Bytes) -> Self {
        Self(Arc::new(Inner { services, openapi, asyncapi }))
    }

    /// The documents.
    pub(crate) fn documents(&self) -> (&Bytes, &Bytes) {
        (&self.0.openapi, &self.0.asyncapi)
    }
}

impl Deref for ApiState {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.0.services
    }
}
