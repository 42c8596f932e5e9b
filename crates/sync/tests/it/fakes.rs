//! A log in memory whose failures are chosen by the test, and an observer that writes down what it is told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::{Audience, Event, EventId, EventOrigin, EventType, Seq, StoreError, SyncEpoch, TenantId, Timestamp};
use sync::{Head, LogStore, Logs, Observer, Page, PageRange, Position, Retired, Settings, TenantLog};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

pub(crate) fn epoch(number: u64) -> SyncEpoch {
    format!("00000000-0000-0000-0000-{number:012}").parse().unwrap()
}

pub(crate) fn event(number: u64, body_bytes: usize) -> Arc<Event> {
    let id: EventId = format!("00000000-0000-0000-0001-{number:012}").parse().unwrap();
    let body = Bytes::from(vec![b'x'; body_bytes]);
    let event_type = EventType::parse("a.b").unwrap();
    Arc::new(Event::new(seq(number), id, event_type, None, Audience::default(), EventOrigin::Published, Timestamp::from_micros(0), body))
}

/// Waits until the position is such; fails when a minute does not suffice.
pub(crate) async fn reach(log: &TenantLog, is_reached: impl FnMut(&Position) -> bool) {
    let mut position = log.subscribe();
    let reached = tokio::time::timeout(Duration::from_mins(1), position.wait_for(is_reached));
    assert!(reached.await.expect("the position is reached").is_ok());
}

pub(crate) fn numbers(events: &[Arc<Event>]) -> Vec<u64> {
    events.iter().map(|event| event.seq.get()).collect()
}

pub(crate) fn range(after: u64, up_to: Option<u64>) -> PageRange {
    PageRange { after: seq(after), up_to: up_to.map(seq), max_events: 1_000, max_bytes: 1 << 20 }
}

#[derive(Debug, Clone)]
pub(crate) struct FakeLog {
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) floor: u64,
    pub(crate) epoch: SyncEpoch,
}

impl FakeLog {
    fn head(&self) -> Head {
        let seq = self.events.last().map_or(Seq::ZERO, |event| event.seq);
        Head { seq, floor: Seq::new(self.floor).unwrap(), epoch: self.epoch }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) pages: usize,
    pub(crate) heads: Vec<usize>,
    pub(crate) raises: Vec<(TenantId, Timestamp)>,
    pub(crate) sweeps: Vec<(TenantId, Timestamp)>,
    pub(crate) expiries: usize,
}

#[derive(Debug, Default)]
pub(crate) struct FakeStore {
    logs: Mutex<BTreeMap<TenantId, FakeLog>>,
    pub(crate) calls: Mutex<Calls>,
    /// Calls of `page` that fail before the next that does not.
    pub(crate) failing_pages: AtomicU32,
    pub(crate) failing_heads: AtomicU32,
    /// When present, `heads` takes its snapshot, then waits for a permit.
    pub(crate) heads_gate: Mutex<Option<Arc<Semaphore>>>,
    /// Answers of `raise_floor` and `sweep`, per tenant; nothing more to do when there is none.
    pub(crate) steps: Mutex<BTreeMap<TenantId, VecDeque<Result<Retired, StoreError>>>>,
    pub(crate) expired: Mutex<VecDeque<u64>>,
}

impl FakeStore {
    pub(crate) fn with(tenants: &[&str]) -> Arc<Self> {
        let store = Self::default();
        for name in tenants {
            store.logs().insert(tenant(name), FakeLog { events: Vec::new(), floor: 1, epoch: epoch(1) });
        }
        Arc::new(store)
    }

    pub(crate) fn logs(&self) -> MutexGuard<'_, BTreeMap<TenantId, FakeLog>> {
        self.logs.lock().unwrap()
    }

    pub(crate) fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap()
    }

    /// Commits events of 100 bytes; announces nothing.
    pub(crate) fn commit(&self, name: &str, count: u64) -> Vec<Arc<Event>> {
        let mut logs = self.logs();
        let log = logs.get_mut(&tenant(name)).unwrap();
        let head = log.head().seq.get();
        let batch: Vec<_> = (head + 1..=head + count).map(|number| event(number, 100)).collect();
        log.events.extend(batch.iter().cloned());
        batch
    }

    fn fails(counter: &AtomicU32) -> bool {
        counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    fn step(&self, tenant: &TenantId) -> Result<Retired, StoreError> {
        let nothing = Ok(Retired { floor: Seq::ZERO, removed: 0, more: false });
        self.steps.lock().unwrap().get_mut(tenant).and_then(VecDeque::pop_front).unwrap_or(nothing)
    }
}

#[async_trait]
impl LogStore for FakeStore {
    async fn head(&self, tenant: &TenantId) -> Result<Option<Head>, StoreError> {
        Ok(self.logs().get(tenant).map(FakeLog::head))
    }

    async fn heads(&self, tenants: &[TenantId]) -> Result<Vec<(TenantId, Head)>, StoreError> {
        self.calls().heads.push(tenants.len());
        if Self::fails(&self.failing_heads) {
            return Err(StoreError::Unavailable);
        }
        let heads = tenants.iter().filter_map(|tenant| Some((tenant.clone(), self.logs().get(tenant)?.head()))).collect();
        let gate = self.heads_gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
        Ok(heads)
    }

    async fn page(&self, tenant: &TenantId, range: PageRange) -> Result<Page, StoreError> {
        self.calls().pages += 1;
        tokio::task::yield_now().await;
        if Self::fails(&self.failing_pages) {
            return Err(StoreError::Unavailable);
        }
        let logs = self.logs();
        let Some(log) = logs.get(tenant) else { return Err(StoreError::TenantInactive) };
        let head = log.head();
        let up_to = range.up_to.unwrap_or(head.seq);
        let wanted = log.events.iter().filter(|event| event.seq > range.after && event.seq <= up_to && event.seq >= head.floor);
        Ok(Page { events: wanted.take(range.max_events).cloned().collect(), head })
    }

    async fn raise_floor(&self, tenant: &TenantId, older_than: Timestamp, _limit: usize) -> Result<Retired, StoreError> {
        self.calls().raises.push((tenant.clone(), older_than));
        self.step(tenant)
    }

    async fn sweep(&self, tenant: &TenantId, raised_before: Timestamp, _limit: usize) -> Result<Retired, StoreError> {
        self.calls().sweeps.push((tenant.clone(), raised_before));
        self.step(tenant)
    }

    async fn expire_keys(&self, _now: Timestamp, _limit: usize) -> Result<u64, StoreError> {
        self.calls().expiries += 1;
        Ok(self.expired.lock().unwrap().pop_front().unwrap_or(0))
    }
}

/// What an observer was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Started,
    Observed(Vec<u64>),
    Stopped,
}

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    told: Mutex<Vec<(TenantId, Told)>>,
    pub(crate) failing: AtomicU32,
    pub(crate) attempts: AtomicU32,
    /// When present, every `tail_started` waits for a permit.
    pub(crate) start_gate: Mutex<Option<Arc<Semaphore>>>,
    /// When present, every `observe` waits for a permit.
    pub(crate) observe_gate: Mutex<Option<Arc<Semaphore>>>,
}

impl Recorder {
    pub(crate) fn told(&self, name: &str) -> Vec<Told> {
        let tenant = tenant(name);
        self.told.lock().unwrap().iter().filter(|(each, _)| *each == tenant).map(|(_, told)| told.clone()).collect()
    }

    /// Every number that was observed, in the order of observation.
    pub(crate) fn observed(&self, name: &str) -> Vec<u64> {
        let of = |told| if let Told::Observed(numbers) = told { numbers } else { Vec::new() };
        self.told(name).into_iter().flat_map(of).collect()
    }

    fn note(&self, tenant: &TenantId, told: Told) {
        self.told.lock().unwrap().push((tenant.clone(), told));
    }
}

#[async_trait]
impl Observer for Recorder {
    async fn tail_started(&self, tenant: &TenantId) -> Result<(), StoreError> {
        let gate = self.start_gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
        self.note(tenant, Told::Started);
        Ok(())
    }

    async fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) -> Result<(), StoreError> {
        self.attempts.fetch_add(1, Ordering::SeqCst);
        let gate = self.observe_gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
        if FakeStore::fails(&self.failing) {
            return Err(StoreError::Unavailable);
        }
        self.note(tenant, Told::Observed(numbers(events)));
        Ok(())
    }

    fn tail_stopped(&self, tenant: &TenantId) {
        self.note(tenant, Told::Stopped);
    }
}

/// Logs over fakes.
pub(crate) struct Setup {
    pub(crate) store: Arc<FakeStore>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) tracker: TaskTracker,
    pub(crate) cancel: CancellationToken,
}

/// Short rings and pages, so that every path is taken; a poll each second, a linger of ten.
pub(crate) fn settings() -> Settings {
    Settings {
        ring_max_events: 8,
        page_max_events: 5,
        tail_queue_max_events: 20,
        tail_poll_interval: Duration::from_secs(1),
        tail_linger: Duration::from_secs(10),
        backoff_cap: Duration::from_secs(2),
        ..Settings::default()
    }
}

impl Setup {
    pub(crate) fn new(tenants: &[&str]) -> Self {
        Self::with(tenants, settings())
    }

    pub(crate) fn with(tenants: &[&str], settings: Settings) -> Self {
        let (store, recorder) = (FakeStore::with(tenants), Arc::new(Recorder::default()));
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let (log_store, observer): (Arc<dyn LogStore>, Arc<dyn Observer>) = (store.clone(), recorder.clone());
        let logs = Logs::start(log_store, observer, settings, tracker.clone(), cancel.clone());
        Self { store, recorder, logs, tracker, cancel }
    }

    /// Opens a log and lets its tail have its first look, so that nothing later is found by accident.
    pub(crate) async fn open(&self, name: &str) -> Arc<TenantLog> {
        let log = self.logs.open(&tenant(name)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        log
    }

    /// Commits and announces, as the store of this process does.
    pub(crate) fn publish(&self, name: &str, count: u64) {
        let batch = self.store.commit(name, count);
        self.announce(name, &batch);
    }

    pub(crate) fn announce(&self, name: &str, batch: &[Arc<Event>]) {
        let epoch = self.store.logs()[&tenant(name)].epoch;
        sync::CommitListener::committed(&*self.logs, &tenant(name), epoch, batch);
    }
}
