//! What the cases of this store alone share: the suite's fixture over a store whose files are at hand.

use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::{StoreError, run_tx};
use doorstep_store_sqlite::{MetricsSnapshot, SqliteStore, StoreOptions};
use intake::PublishTx;
use rusqlite::Connection;
use tempfile::TempDir;
use testkit::ManualClock;
pub(crate) use testkit::conformance::support::{Recorder, START, new_seq, range, seq, tenant};

use crate::conformance::Opened;

/// Makes a store one from before there were hooks.
pub(crate) const WITHOUT_HOOKS: &str = "
    DROP TABLE hook_attempts; DROP TABLE hook_deliveries; DROP TABLE hook_keys; DROP TABLE hooks;
    DROP TABLE hook_positions; DROP TABLE hook_groups; DROP TABLE hook_server_keys;
    DELETE FROM schema_migrations WHERE version >= 3;
    PRAGMA user_version = 2";

/// A store with one tenant, `acme`.
pub(crate) struct Fixture {
    pub(crate) dir: Arc<TempDir>,
    pub(crate) store: Arc<SqliteStore>,
    suite: testkit::conformance::support::Fixture,
}

impl Deref for Fixture {
    type Target = testkit::conformance::support::Fixture;

    fn deref(&self) -> &Self::Target {
        &self.suite
    }
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(StoreOptions::default()).await
    }

    pub(crate) async fn with(options: StoreOptions) -> Self {
        let (dir, clock) = (Arc::new(tempfile::tempdir().unwrap()), clock());
        let store = SqliteStore::open(dir.path(), options, clock.clone()).unwrap();
        let fixture = Self::over(dir, store, clock);
        fixture.create_tenant("acme").await;
        fixture
    }

    /// A store with these agents of tenant `acme`.
    pub(crate) async fn with_agents(names: &[&str]) -> Self {
        let fixture = Self::new().await;
        for name in names {
            fixture.create_principal(name, authz::PrincipalKind::Agent).await;
        }
        fixture
    }

    pub(crate) fn over(dir: Arc<TempDir>, store: Arc<SqliteStore>, clock: Arc<ManualClock>) -> Self {
        let subject = Opened { dir: Arc::clone(&dir), store: Arc::clone(&store), clock: clock.clone() };
        Self { dir, store, suite: testkit::conformance::support::Fixture::over(Box::new(subject), clock) }
    }

    /// The same place and clock with another opening of the store.
    pub(crate) fn after(self, store: Arc<SqliteStore>) -> Self {
        Self::over(Arc::clone(&self.dir), store, Arc::clone(&self.clock))
    }

    /// Waits until the store's counters are as they should be.
    pub(crate) async fn wait_for(&self, condition: impl Fn(&MetricsSnapshot) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !condition(&self.store.metrics().snapshot()) {
            assert!(Instant::now() < deadline, "{:?}", self.store.metrics().snapshot());
            tokio::task::yield_now().await;
        }
    }

    /// The database file, opened beside the store.
    pub(crate) fn raw(&self) -> Connection {
        Connection::open(self.store.path()).unwrap()
    }
}

/// A clock at the instant at which every case begins.
pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(START))
}

/// Keeps the writer busy until it is opened: what is enqueued meanwhile shares the next batch.
pub(crate) struct Gate {
    opener: std::sync::mpsc::Sender<()>,
    busy: tokio::task::JoinSet<Result<(), StoreError>>,
}

impl Gate {
    pub(crate) async fn close(fixture: &Fixture) -> Self {
        let (opener, wait) = std::sync::mpsc::channel::<()>();
        let (reached, mut reaching) = tokio::sync::mpsc::unbounded_channel();
        let wait = Mutex::new(wait);
        let store = Arc::clone(&fixture.store);
        let busy = tokio::task::JoinSet::from_iter([async move {
            run_tx::<dyn PublishTx, _, StoreError, _>(&*store, "gate", move |_| {
                reached.send(()).unwrap();
                wait.lock().unwrap().recv().unwrap();
                Box::pin(async { Ok(()) })
            })
            .await
        }]);
        reaching.recv().await.unwrap();
        Self { opener, busy }
    }

    pub(crate) async fn open(self) {
        self.opener.send(()).unwrap();
        assert_eq!(self.busy.join_all().await, [Ok(())]);
    }
}
