//! The store: connecting, the ways to its connections, closing.

use std::sync::{Arc, PoisonError, RwLock};

use domain::{BoxFuture, Clock, Event, StoreError, SyncEpoch, TenantId};
use sqlx_postgres::PgConnectOptions;
use sync::CommitListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::doubt::Doubt;
use crate::failure::{Failure, OpenError};
use crate::inbox::Inboxes;
use crate::log::{Appenders, Partitions};
use crate::metrics::StoreMetrics;
use crate::pool::{Lease, Pool};
use crate::session::Session;
use crate::sql::sql;
use crate::tx::{self, WriteTx};
use crate::{PostgresOptions, connection, db, exchange, schema};

/// Every store port on one PostgreSQL database, which any number of processes use at the same time.
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
}

/// What the store's tasks have in common.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) connect: PgConnectOptions,
    pub(crate) options: PostgresOptions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: StoreMetrics,
    pub(crate) doubt: Doubt,
    /// Connections of the node's signs of life and leases, which must not wait behind requests.
    pub(crate) presence: Pool,
    pub(crate) appenders: Appenders,
    pub(crate) partitions: Partitions,
    pub(crate) inboxes: Inboxes,
    pub(crate) tracker: TaskTracker,
    pub(crate) cancel: CancellationToken,
    /// Held by a unit of work that is tried once more.
    pub(crate) turns: tokio::sync::Mutex<()>,
    listener: RwLock<Option<Arc<dyn CommitListener>>>,
}

impl Shared {
    /// Tells the listener what became durable.
    pub(crate) fn tell(&self, tenant: &TenantId, epoch: SyncEpoch, events: &[Arc<Event>]) {
        let listener = self.listener.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(listener) = listener else { return };
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| listener.committed(tenant, epoch, events)));
        if told.is_err() {
            tracing::error!("the listener of commits panicked");
        }
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("database", &self.database()).finish_non_exhaustive()
    }
}

/// Connections of a node's signs of life; made when they are needed.
const PRESENCE: usize = 2;

/// A snapshot: every statement on its connection sees the same rows. It ends when it is dropped.
pub(crate) struct ReadTx {
    lease: Lease,
}

impl ReadTx {
    /// The connection, in its transaction.
    pub(crate) fn connection(&mut self) -> &mut Session {
        &mut self.lease
    }
}

impl PostgresStore {
    /// Connects to the database, holds its schema against this release's, and brings it up to date when `auto_migrate` says so.
    ///
    /// # Errors
    /// [`OpenError`], as a sentence for the operator.
    pub async fn connect(options: PostgresOptions, clock: Arc<dyn Clock>) -> Result<Arc<Self>, OpenError> {
        let store = Self::connect_to_fill(options, clock).await?;
        let failed = |failure| schema::failed(&store.shared.connect, failure);
        let mut connection = store.reader().await.map_err(failed)?;
        if exchange::is_unfinished(&mut connection).await.map_err(failed)? {
            return Err(OpenError::Unfinished { database: store.database() });
        }
        drop(connection);
        Ok(store)
    }

    /// The same for who fills the store from another one: also with a transfer in it that did not end.
    ///
    /// # Errors
    /// [`OpenError`], as a sentence for the operator.
    pub async fn connect_to_fill(options: PostgresOptions, clock: Arc<dyn Clock>) -> Result<Arc<Self>, OpenError> {
        let connect = connection::connect_options(&options)?;
        schema::check_durability(&connect).await?;
        schema::prepare(&connect, &options, clock.now()).await?;
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let pool = |size| Pool::new(&connect, size, &options, &tracker, &cancel);
        let (requests, appends, presence) = (pool(options.connections.max(2)), pool(options.append_connections.max(1)), pool(PRESENCE));
        let shared = Shared {
            pool: requests,
            presence,
            appenders: Appenders::new(appends),
            connect,
            options,
            clock,
            metrics: StoreMetrics::default(),
            doubt: Doubt::default(),
            partitions: Partitions::default(),
            inboxes: Inboxes::default(),
            tracker,
            cancel,
            turns: tokio::sync::Mutex::default(),
            listener: RwLock::default(),
        };
        let store = Self { shared: Arc::new(shared) };
        let failed = |failure| schema::failed(&store.shared.connect, failure);
        store.shared.doubt.prepare(&store.shared).await.map_err(failed)?;
        Ok(Arc::new(store))
    }

    /// From now on `listener` is told of every commit of this process that appended, before the publishers are answered. Commits of one tenant's
    /// appender come in order; another transaction's may come beside them.
    pub fn set_listener(&self, listener: Arc<dyn CommitListener>) {
        *self.shared.listener.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// What the store counts about itself.
    pub fn metrics(&self) -> &StoreMetrics {
        self.shared.metrics.connected(self.shared.pool.lent(self.shared.options.connections.max(2)));
        let (requests, bytes) = self.shared.appenders.waiting();
        self.shared.metrics.waiting(requests as u64, bytes as u64);
        &self.shared.metrics
    }

    /// Host and name of the database, without credentials.
    pub fn database(&self) -> String {
        connection::described(&self.shared.connect)
    }

    /// How the store was set up.
    pub fn options(&self) -> &PostgresOptions {
        &self.shared.options
    }

    /// The clock that decides: leases, deadlines, expiry.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Refuses new calls, finishes those that run, and closes every connection. Later calls are [`StoreError::Unavailable`].
    pub async fn close(&self) {
        self.shared.cancel.cancel();
        self.shared.tracker.close();
        self.shared.tracker.wait().await;
        self.shared.appenders.close().await;
        self.shared.presence.close().await;
        self.shared.pool.close().await;
        self.shared.doubt.close().await;
        *self.shared.listener.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A connection for one reading statement, which is one snapshot.
    pub(crate) async fn reader(&self) -> Result<Lease, Failure> {
        self.shared.metrics.read();
        self.shared.pool.lend_to_read().await
    }

    /// A connection for several reading statements in one snapshot.
    pub(crate) async fn snapshot(&self) -> Result<ReadTx, Failure> {
        let mut lease = self.reader().await?;
        lease.set_open(true);
        db::script(sql!("store/begin_snapshot")).execute(&mut *lease).await?;
        Ok(ReadTx { lease })
    }

    /// Runs `function` in a transaction and answers after the durable commit. It may run several times.
    pub(crate) async fn write<T, F>(&self, name: &'static str, function: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnMut(&'t mut WriteTx) -> BoxFuture<'t, Result<T, Failure>> + Send + 'static,
    {
        if self.shared.cancel.is_cancelled() {
            return Err(StoreError::Unavailable);
        }
        let (sender, receiver) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        // A caller who goes away must not cut a commit in half.
        self.shared.tracker.spawn(async move {
            let _ = sender.send(tx::run(&shared, name, function).await);
        });
        receiver.await.unwrap_or(Err(StoreError::InDoubt))
    }
}

/// Units of work over a union of ports that [`WriteTx`] has.
macro_rules! transactions {
    ($union:ty) => {
        #[async_trait::async_trait]
        impl domain::Transactions<$union> for crate::store::PostgresStore {
            async fn run(&self, name: &'static str, mut unit: domain::Unit<$union>) -> Result<(), domain::StoreError> {
                self.write(name, move |tx| {
                    let done = unit(tx);
                    Box::pin(async move { done.await.map_err(crate::failure::Failure::from) })
                })
                .await
            }
        }
    };
}

pub(crate) use transactions;
