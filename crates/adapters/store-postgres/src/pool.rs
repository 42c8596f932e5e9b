//! Connections that are lent out, never more than a bound.
//!
//! Of its own, because the hot paths must not pay a round trip for each connection that is handed out or taken back: only one that may have been
//! harmed since it was last used is looked at before.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::StoreError;
use sqlx_core::Error;
use sqlx_postgres::PgConnectOptions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::failure::{Failure, trouble};
use crate::session::Session;
use crate::sql::sql;
use crate::{PostgresOptions, connection, db};

/// The pause before connecting is tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection may take to show that it lives, or to give up its transaction.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection that nobody used for longer is looked at first: something between may have forgotten it.
const STALE: Duration = Duration::from_secs(30);

/// A bounded number of connections to one database.
#[derive(Clone)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    options: PgConnectOptions,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    closed: AtomicBool,
    acquire_timeout: Duration,
    /// How long a reading statement may take here; longer than the server lets it take.
    patience: Duration,
    tracker: TaskTracker,
    cancel: CancellationToken,
}

/// A connection that nobody uses.
struct Idle {
    connection: Session,
    /// How many failures of connections were known when it was last in order.
    trouble: u64,
    /// Since when nobody used it.
    since: Instant,
}

impl Pool {
    /// At most `size` connections, made when they are needed. What is still to be done with those that come back is done by tasks of `tracker`, until
    /// `cancel` is cancelled.
    pub(crate) fn new(
        connect: &PgConnectOptions,
        size: usize,
        options: &PostgresOptions,
        tracker: &TaskTracker,
        cancel: &CancellationToken,
    ) -> Self {
        let shared = Shared {
            options: connect.clone(),
            permits: Arc::new(Semaphore::new(size.max(1))),
            idle: Mutex::default(),
            closed: AtomicBool::new(false),
            acquire_timeout: options.acquire_timeout,
            patience: options.patience(),
            tracker: tracker.clone(),
            cancel: cancel.clone(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// [`Pool::lend`] to who only reads: a statement that is not answered in time fails, and its connection is not lent again.
    pub(crate) async fn lend_to_read(&self) -> Result<Lease, Failure> {
        let mut lease = self.lend().await?;
        lease.bound(Some(self.shared.patience));
        Ok(lease)
    }

    /// Lends a connection. Waits while all are lent, and while the server cannot be reached, but not for longer than the pool's patience.
    pub(crate) async fn lend(&self) -> Result<Lease, Failure> {
        let deadline = Instant::now() + self.shared.acquire_timeout;
        let waiting = tokio::time::timeout_at(deadline, Arc::clone(&self.shared.permits).acquire_owned());
        let permit = match waiting.await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(StoreError::Unavailable.into()),
            Err(_) => return Err(StoreError::Overloaded.into()),
        };
        let trouble = trouble();
        let connection = match self.idle_connection(trouble).await {
            Some(connection) => connection,
            None => self.connect(deadline).await?,
        };
        Ok(Lease {
            connection: Some(connection),
            trouble,
            is_open: false,
            is_unsure: false,
            shared: Arc::clone(&self.shared),
            permit: Some(permit),
        })
    }

    /// The connection used last, when it is in order.
    async fn idle_connection(&self, trouble: u64) -> Option<Session> {
        loop {
            let mut idle = self.shared.idle().pop()?;
            if idle.trouble == trouble && idle.since.elapsed() < STALE {
                return Some(idle.connection);
            }
            match tokio::time::timeout(PATIENCE, idle.connection.ping()).await {
                Ok(Ok(())) => return Some(idle.connection),
                Ok(Err(_)) => {}
                // Others may be silent too, and whoever waits here would wait for each of them: a new one takes its place.
                Err(_) => return None,
            }
        }
    }

    async fn connect(&self, deadline: Instant) -> Result<Session, Failure> {
        loop {
            let error = match connection::open(&self.shared.options).await {
                Ok(connection) => return Ok(Session::new(connection)),
                Err(error) => error,
            };
            if self.shared.closed.load(Ordering::Relaxed) || !passes(&error) || Instant::now() + PAUSE > deadline {
                return Err(error.into());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// How many connections are lent now.
    pub(crate) fn lent(&self, size: usize) -> usize {
        size.saturating_sub(self.shared.permits.available_permits())
    }

    /// Lends nothing any more, and closes what is not lent; the rest is closed when it comes back.
    pub(crate) async fn close(&self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.shared.permits.close();
        let idle = std::mem::take(&mut *self.shared.idle());
        for each in idle {
            let _ = tokio::time::timeout(PATIENCE, each.connection.close()).await;
        }
    }
}

/// Whether a server that said this to a new connection may take one in a moment: it is starting, stopping, full, or not there.
fn passes(error: &Error) -> bool {
    match error {
        Error::Io(_) => true,
        Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P") || code == "53300" || code.starts_with("08")),
        _ => false,
    }
}

impl Shared {
    /// Sees to it that whoever is lent the connection next meets nothing of what was done on it. Its place stays taken meanwhile: the server works on what
    /// nobody waits for any more, and does not work on more than it was set up for.
    async fn is_restored(&self, connection: &mut Session, is_open: bool) -> bool {
        if let Some(asked) = connection.asked() {
            connection.bound(None);
            let draining = tokio::time::timeout_at(asked + self.patience, connection.drain());
            if !matches!(self.cancel.run_until_cancelled(draining).await, Some(Ok(true))) {
                return false;
            }
        }
        !is_open || matches!(tokio::time::timeout(PATIENCE, db::script(sql!("store/rollback")).execute(connection)).await, Ok(Ok(_)))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_back(&self, mut connection: Session, trouble: u64) {
        connection.bound(None);
        if !self.closed.load(Ordering::Relaxed) {
            self.idle().push(Idle { connection, trouble, since: Instant::now() });
        }
    }
}

/// A connection on loan; it goes back when dropped. One with a statement in flight is waited for and one with an open transaction is rolled back first, one
/// in doubt is closed.
pub(crate) struct Lease {
    connection: Option<Session>,
    /// Failures of connections that were known when it was lent.
    trouble: u64,
    is_open: bool,
    is_unsure: bool,
    shared: Arc<Shared>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Lease {
    /// A transaction was begun and did not end.
    pub(crate) fn set_open(&mut self, is_open: bool) {
        self.is_open = is_open;
    }

    /// Nobody knows what state it is in: it is not lent again.
    pub(crate) fn set_unsure(&mut self) {
        self.is_unsure = true;
    }
}

#[expect(clippy::expect_used, reason = "only a drop takes the connection out")]
impl Deref for Lease {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.connection.as_ref().expect("a lease has its connection until it is dropped")
    }
}

#[expect(clippy::expect_used, reason = "only a drop takes the connection out")]
impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Session {
        self.connection.as_mut().expect("a lease has its connection until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (Some(mut connection), false) = (self.connection.take(), self.is_unsure) else { return };
        if !self.is_open && connection.asked().is_none() {
            return self.shared.take_back(connection, self.trouble);
        }
        // Without a runtime the connection is closed here, and the server rolls back by itself.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (shared, permit, trouble, is_open) = (Arc::clone(&self.shared), self.permit.take(), self.trouble, self.is_open);
        let restore = async move {
            if shared.is_restored(&mut connection, is_open).await {
                shared.take_back(connection, trouble);
            }
            drop(permit);
        };
        self.shared.tracker.spawn_on(restore, &runtime);
    }
}
