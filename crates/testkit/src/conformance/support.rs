//! What the cases share: a store in a place of its own, a clock that stands still, and short ways to make things.

#![expect(missing_docs, reason = "the names say it; nobody but a case reads them")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use authz::{AdminTx, Principal, PrincipalKind, Role, Tenant, TenantState};
use bytes::Bytes;
use domain::{
    Appended, Audience, BoxFuture, ChannelRef, Clock, Deduplication, DeduplicationKey, Event, EventId, EventOrigin, EventType, PrincipalId,
    Publication, Seq, StoreError, SyncEpoch, TenantId, Timestamp, run_tx,
};
use intake::PublishTx;
use sync::{CommitListener, Page, PageRange};
use uuid::Uuid;

use super::harness::{Harness, Ports, Subject};
use crate::ManualClock;

pub const START: Timestamp = Timestamp::from_micros(1_752_337_320_000_000);

/// A store with one tenant, `acme`.
pub struct Fixture {
    pub clock: Arc<ManualClock>,
    pub store: Arc<dyn Ports>,
    pub tenant: TenantId,
    subject: Box<dyn Subject>,
}

impl std::fmt::Debug for Fixture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fixture").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Fixture {
    pub async fn new(harness: &dyn Harness) -> Self {
        let fixture = Self::empty(harness).await;
        fixture.create_tenant("acme").await;
        fixture
    }

    /// A store without a tenant.
    pub async fn empty(harness: &dyn Harness) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        Self::over(harness.open(clock.clone()).await, clock)
    }

    /// An open store, whose clock is `clock`.
    pub fn over(subject: Box<dyn Subject>, clock: Arc<ManualClock>) -> Self {
        Self { clock, store: subject.ports(), tenant: tenant("acme"), subject }
    }

    /// Closes the store and opens it again.
    pub async fn reopen(self) -> Self {
        let Self { clock, store, tenant, subject } = self;
        drop(store);
        let subject = subject.reopen().await;
        Self { clock, store: subject.ports(), tenant, subject }
    }

    /// How many rows a table has, or those of them for which the condition behind its name holds.
    pub async fn count(&self, rows: &str) -> i64 {
        self.subject.count(rows).await
    }

    /// How many rows of all logs are there and not given up.
    pub async fn log_rows(&self) -> i64 {
        self.subject.log_rows().await
    }

    /// Changes rows beside the store; answers how many.
    pub async fn execute(&self, statement: &str) -> u64 {
        self.subject.execute(statement).await
    }

    /// The column of an event's place, and an expression of its `seq`.
    pub fn log_column(&self) -> (&'static str, &'static str) {
        self.subject.log_column()
    }

    /// An id in a statement.
    pub fn literal(&self, id: Uuid) -> String {
        self.subject.literal(id)
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub async fn create_tenant(&self, name: &str) -> Tenant {
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

    pub async fn create_principal(&self, id: &str, kind: PrincipalKind) -> PrincipalId {
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

    pub fn listen(&self, listener: Arc<dyn CommitListener>) {
        self.subject.listen(listener);
    }

    pub async fn set_state(&self, state: TenantState) {
        let tenant = self.tenant.clone();
        let changed = self
            .admin(move |tx| {
                let tenant = tenant.clone();
                Box::pin(async move { tx.set_tenant_state(&tenant, state).await })
            })
            .await;
        assert_eq!(changed, Ok(true));
    }

    pub async fn admin<T, F>(&self, unit: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnMut(&'t mut (dyn AdminTx + 'static)) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        run_tx::<dyn AdminTx, _, StoreError, _>(&*self.store, "test_admin", unit).await
    }

    pub async fn publish_tx<T, F>(&self, unit: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnMut(&'t mut (dyn PublishTx + 'static)) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        run_tx::<dyn PublishTx, _, StoreError, _>(&*self.store, "test_publish", unit).await
    }

    /// Appends one request and answers what became of it.
    pub async fn append(&self, publications: Vec<Publication>) -> Result<Vec<Appended>, StoreError> {
        Ok(self.store.append(&self.tenant, publications).await?.appended)
    }

    /// Appends `count` plain events, one request each.
    pub async fn fill(&self, count: usize) {
        for _ in 0..count {
            self.append(vec![self.event("x")]).await.unwrap();
        }
    }

    pub async fn page_after(&self, after: u64) -> Result<Page, StoreError> {
        self.store.page(&self.tenant, range(after)).await
    }

    pub async fn head(&self) -> u64 {
        self.store.head(&self.tenant).await.unwrap().unwrap().seq.get()
    }

    /// A publication to channel `s/c` with `text` in its payload.
    pub fn event(&self, text: &str) -> Publication {
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
    pub fn keyed(&self, key: &str, text: &str) -> Publication {
        let mut body_hash = [0; 32];
        for (slot, byte) in body_hash.iter_mut().zip(text.bytes()) {
            *slot = byte;
        }
        let expires_at = self.now().plus(Duration::from_hours(1));
        let deduplication = Deduplication { key: DeduplicationKey::parse(key).unwrap(), body_hash, expires_at };
        Publication { deduplication: Some(deduplication), ..self.event(text) }
    }
}

pub fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

pub fn principal(id: &str, kind: PrincipalKind, created_at: Timestamp) -> Principal {
    Principal { id: PrincipalId::parse(id).unwrap(), kind, role: Role::Member, display_name: None, enabled: true, created_at }
}

pub fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

pub fn range(after: u64) -> PageRange {
    PageRange { after: seq(after), up_to: None, max_events: 10_000, max_bytes: 64 << 20 }
}

/// Identifiers that grow, as UUIDv7 do.
pub fn fresh() -> Uuid {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u64_pair(NEXT.fetch_add(1, Ordering::SeqCst), 0x8000_0000_0000_0000)
}

pub fn new_seq(appended: &Appended) -> u64 {
    match appended {
        Appended::New { seq, .. } => seq.get(),
        other => panic!("not new: {other:?}"),
    }
}

type Commits = Vec<(TenantId, SyncEpoch, Vec<Arc<Event>>)>;

/// A listener that remembers everything.
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Commits>);

impl Recorder {
    pub fn listen(fixture: &Fixture) -> Arc<Self> {
        let recorder = Arc::new(Self::default());
        fixture.subject.listen(recorder.clone());
        recorder
    }

    pub fn commits(&self, name: &str) -> Vec<(SyncEpoch, Vec<Arc<Event>>)> {
        let commits = self.0.lock().unwrap();
        commits.iter().filter(|(tenant, ..)| tenant.as_str() == name).map(|(_, epoch, events)| (*epoch, events.clone())).collect()
    }

    pub fn seqs(&self, name: &str) -> Vec<u64> {
        self.commits(name).iter().flat_map(|(_, events)| events.iter().map(|event| event.seq.get())).collect()
    }

    pub fn ids(&self, name: &str) -> Vec<EventId> {
        self.commits(name).iter().flat_map(|(_, events)| events.iter().map(|event| event.id)).collect()
    }

    pub fn last(&self, name: &str) -> u64 {
        self.seqs(name).into_iter().max().unwrap_or(0)
    }
}

impl CommitListener for Recorder {
    fn committed(&self, tenant: &TenantId, epoch: SyncEpoch, events: &[Arc<Event>]) {
        self.0.lock().unwrap().push((tenant.clone(), epoch, events.to_vec()));
    }
}
