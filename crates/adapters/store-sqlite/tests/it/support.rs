//! What the cases share: a store in a directory of its own, a clock that stands still, and short ways to make things.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use authz::{AdminTx, Principal, PrincipalKind, Role, Tenant, TenantState};
use bytes::Bytes;
use domain::{
    Appended, Audience, BoxFuture, ChannelRef, Clock, Deduplication, DeduplicationKey, Event, EventId, EventOrigin, EventType, PrincipalId,
    Publication, Seq, StoreError, SyncEpoch, TenantId, Timestamp, run_tx,
};
use doorstep_store_sqlite::{MetricsSnapshot, SqliteStore, StoreOptions};
use intake::PublishTx;
use rusqlite::Connection;
use sync::{Append, CommitListener, LogStore, Page, PageRange};
use tempfile::TempDir;
use uuid::Uuid;

/// A clock that only moves when it is told to.
#[derive(Debug)]
pub(crate) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(START.as_micros())))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// Makes a store one from before there were hooks.
pub(crate) const WITHOUT_HOOKS: &str = "
    DROP TABLE hook_attempts; DROP TABLE hook_deliveries; DROP TABLE hook_keys; DROP TABLE hooks;
    DROP TABLE hook_positions; DROP TABLE hook_groups; DROP TABLE hook_server_keys;
    DELETE FROM schema_migrations WHERE version = 3;
    PRAGMA user_version = 2";

pub(crate) const START: Timestamp = Timestamp::from_micros(1_752_337_320_000_000);

/// A store with one tenant, `acme`.
pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) tenant: TenantId,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(StoreOptions::default()).await
    }

    pub(crate) async fn with(options: StoreOptions) -> Self {
        let fixture = Self::empty(options);
        fixture.create_tenant("acme").await;
        fixture
    }

    pub(crate) fn empty(options: StoreOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let store = SqliteStore::open(dir.path(), options, clock.clone()).unwrap();
        Self { dir, clock, store, tenant: tenant("acme") }
    }

    /// Closes the store and opens it again.
    pub(crate) async fn reopen(self) -> Self {
        self.store.close().await;
        let Self { dir, clock, store, tenant } = self;
        drop(store);
        let store = SqliteStore::open(dir.path(), StoreOptions::default(), clock.clone()).unwrap();
        Self { dir, clock, store, tenant }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) async fn create_tenant(&self, name: &str) -> Tenant {
        let tenant = Tenant {
            id: tenant(name),
            state: TenantState::Active,
            head: Seq::ZERO,
            epoch: SyncEpoch::new(fresh()),
            created_at: self.now(),
        };
        let made = tenant.clone();
        self.admin(move |tx| {
            let tenant = made.clone();
            Box::pin(async move { tx.create_tenant(&tenant).await })
        })
        .await
        .unwrap();
        tenant
    }

    pub(crate) async fn create_principal(&self, id: &str, kind: PrincipalKind) -> PrincipalId {
        let (tenant, made) = (self.tenant.clone(), principal(id, kind, self.now()));
        let id = made.id.clone();
        self.admin(move |tx| {
            let (tenant, made) = (tenant.clone(), made.clone());
            Box::pin(async move { tx.create_principal(&tenant, &made).await })
        })
        .await
        .unwrap();
        id
    }

    pub(crate) async fn set_state(&self, state: TenantState) {
        let tenant = self.tenant.clone();
        let changed = self
            .admin(move |tx| {
                let tenant = tenant.clone();
                Box::pin(async move { tx.set_tenant_state(&tenant, state).await })
            })
            .await;
        assert_eq!(changed, Ok(true));
    }

    pub(crate) async fn admin<T, F>(&self, unit: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnMut(&'t mut (dyn AdminTx + 'static)) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        run_tx::<dyn AdminTx, _, StoreError, _>(&*self.store, "test_admin", unit).await
    }

    pub(crate) async fn publish_tx<T, F>(&self, unit: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnMut(&'t mut (dyn PublishTx + 'static)) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        run_tx::<dyn PublishTx, _, StoreError, _>(&*self.store, "test_publish", unit).await
    }

    /// Appends one request and answers what became of it.
    pub(crate) async fn append(&self, publications: Vec<Publication>) -> Result<Vec<Appended>, StoreError> {
        Ok(self.store.append(&self.tenant, publications).await?.appended)
    }

    /// Appends `count` plain events, one request each.
    pub(crate) async fn fill(&self, count: usize) {
        for _ in 0..count {
            self.append(vec![self.event("x")]).await.unwrap();
        }
    }

    pub(crate) async fn page_after(&self, after: u64) -> Result<Page, StoreError> {
        self.store.page(&self.tenant, range(after)).await
    }

    pub(crate) async fn head(&self) -> u64 {
        self.store.head(&self.tenant).await.unwrap().unwrap().seq.get()
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

    /// A publication to channel `s/c` with `text` in its payload.
    pub(crate) fn event(&self, text: &str) -> Publication {
        let id = EventId::new(fresh());
        Publication {
            id,
            event_type: EventType::parse("message.created").unwrap(),
            channel: Some(ChannelRef::parse("s/c").unwrap()),
            audience: Audience::default(),
            origin: EventOrigin::Published,
            created_at: self.now(),
            body: Bytes::from(format!(r#""id":"{id}","type":"message.created","payload":{{"text":"{text}"}}}}"#)),
            deduplication: None,
            work: None,
        }
    }

    /// A publication with a deduplication key that lives for an hour; the body hash follows the text.
    pub(crate) fn keyed(&self, key: &str, text: &str) -> Publication {
        let mut body_hash = [0; 32];
        for (slot, byte) in body_hash.iter_mut().zip(text.bytes()) {
            *slot = byte;
        }
        let expires_at = self.now().plus(Duration::from_hours(1));
        let deduplication = Deduplication { key: DeduplicationKey::parse(key).unwrap(), body_hash, expires_at };
        Publication { deduplication: Some(deduplication), ..self.event(text) }
    }
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

pub(crate) fn principal(id: &str, kind: PrincipalKind, created_at: Timestamp) -> Principal {
    Principal { id: PrincipalId::parse(id).unwrap(), kind, role: Role::Member, display_name: None, enabled: true, created_at }
}

pub(crate) fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

pub(crate) fn range(after: u64) -> PageRange {
    PageRange { after: seq(after), up_to: None, max_events: 10_000, max_bytes: 64 << 20 }
}

/// Identifiers that grow, as UUIDv7 do.
pub(crate) fn fresh() -> Uuid {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u64_pair(NEXT.fetch_add(1, Ordering::SeqCst), 0x8000_0000_0000_0000)
}

pub(crate) fn new_seq(appended: &Appended) -> u64 {
    match appended {
        Appended::New { seq, .. } => seq.get(),
        other => panic!("not new: {other:?}"),
    }
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

type Commits = Vec<(TenantId, SyncEpoch, Vec<Arc<Event>>)>;

/// A listener that remembers everything.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Commits>);

impl Recorder {
    pub(crate) fn listen(fixture: &Fixture) -> Arc<Self> {
        let recorder = Arc::new(Self::default());
        fixture.store.set_listener(recorder.clone());
        recorder
    }

    pub(crate) fn commits(&self, name: &str) -> Vec<(SyncEpoch, Vec<Arc<Event>>)> {
        let commits = self.0.lock().unwrap();
        commits.iter().filter(|(tenant, ..)| tenant.as_str() == name).map(|(_, epoch, events)| (*epoch, events.clone())).collect()
    }

    pub(crate) fn seqs(&self, name: &str) -> Vec<u64> {
        self.commits(name).iter().flat_map(|(_, events)| events.iter().map(|event| event.seq.get())).collect()
    }

    pub(crate) fn ids(&self, name: &str) -> Vec<EventId> {
        self.commits(name).iter().flat_map(|(_, events)| events.iter().map(|event| event.id)).collect()
    }

    pub(crate) fn last(&self, name: &str) -> u64 {
        self.seqs(name).into_iter().max().unwrap_or(0)
    }
}

impl CommitListener for Recorder {
    fn committed(&self, tenant: &TenantId, epoch: SyncEpoch, events: &[Arc<Event>]) {
        self.0.lock().unwrap().push((tenant.clone(), epoch, events.to_vec()));
    }
}
