//! The tails of this process: which tenants have one, who starts it, and when it goes.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use domain::{Event, Seq, StoreError, SyncEpoch, TenantId};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::shared::{Parts, Shared};
use crate::{CommitListener, Hint, HintListener, LogStore, Metrics, Observer, Settings, TenantLog, poller, tail};

/// The logs that this process has readers for.
///
/// At most one tail per tenant runs at any time: starting and stopping a tenant's tail happen under one of [`Logs::STRIPES`] locks.
pub struct Logs {
    me: Weak<Self>,
    parts: Arc<Parts>,
    live: RwLock<HashMap<TenantId, Live>>,
    stripes: Vec<Mutex<()>>,
    hasher: RandomState,
    tracker: TaskTracker,
    cancel: CancellationToken,
    pub(crate) polled: poller::LastPoll,
}

/// A running tail.
struct Live {
    shared: Arc<Shared>,
    handle: Weak<TenantLog>,
    task: JoinHandle<()>,
}

impl Live {
    fn is_idle(&self) -> bool {
        self.handle.strong_count() == 0
    }
}

impl fmt::Debug for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logs").field("live", &self.read(HashMap::len)).finish_non_exhaustive()
    }
}

impl Logs {
    const STRIPES: usize = 64;

    /// Starts the task that polls the heads of all live tenants (one query each `sync.tail_poll_interval`); tails start with [`Logs::open`]. All of them end with `cancel`.
    pub fn start(
        store: Arc<dyn LogStore>,
        observer: Arc<dyn Observer>,
        settings: Settings,
        tracker: TaskTracker,
        cancel: CancellationToken,
    ) -> Arc<Self> {
        let logs = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            parts: Arc::new(Parts { store, observer, settings, metrics: Metrics::default() }),
            live: RwLock::default(),
            stripes: (0..Self::STRIPES).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
            tracker,
            cancel,
            polled: poller::LastPoll::now(),
        });
        logs.tracker.spawn(poller::run(Arc::downgrade(&logs), logs.cancel.clone(), settings.tail_poll_interval));
        logs
    }

    /// The tenant's log; starts its tail when none runs.
    ///
    /// # Errors
    /// [`StoreError::TenantInactive`] for a tenant that is not there, [`StoreError::Overloaded`] when `sync.max_live_tenants` have readers, [`StoreError::Unavailable`] when
    /// the process stops; otherwise the store's.
    pub async fn open(&self, tenant: &TenantId) -> Result<Arc<TenantLog>, StoreError> {
        if let Some(log) = self.opened(tenant) {
            return Ok(log);
        }
        let Some(me) = self.me.upgrade() else { return Err(StoreError::Unavailable) };
        // On a task of its own, because a caller that goes away must not leave a start or a stop half done.
        let tenant = tenant.clone();
        let starting = self.tracker.spawn(async move { me.start_tail(&tenant).await });
        starting.await.unwrap_or(Err(StoreError::Unavailable))
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// The highest position of any log that has a tail here.
    pub fn highest(&self) -> Seq {
        self.read(|live| live.values().map(|each| each.shared.seq()).max().unwrap_or_default())
    }

    /// Whether tails follow: heads were polled successfully of late, and not every live tail is stalled. A part of readiness; that *some* tails
    /// are stalled shows in the metrics, since the other tenants are served.
    pub fn is_current(&self) -> bool {
        let (live, stalled) = (self.parts.metrics.live_tails.get(), self.parts.metrics.stalled_tails.get());
        if live > 0 && stalled >= live {
            return false;
        }
        let patience = self.parts.settings.tail_poll_interval.saturating_mul(3).max(Duration::from_secs(5));
        self.polled.age() <= patience
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(crate) fn tails(&self) -> Vec<Arc<Shared>> {
        self.read(|live| live.values().map(|each| Arc::clone(&each.shared)).collect())
    }

    /// Ends tails that were replaced or have had no reader for `sync.tail_linger`.
    pub(crate) async fn sweep(&self) {
        for tenant in
            self.read(|live| live.iter().filter(|(_, each)| self.is_over(each)).map(|(tenant, _)| tenant.clone()).collect::<Vec<_>>())
        {
            let Some(stripe) = self.stripe(&tenant) else { continue };
            let _stopping = stripe.lock().await;
            if self.read(|live| live.get(&tenant).is_some_and(|each| self.is_over(each))) {
                self.stop(&tenant).await;
            }
        }
    }

    fn is_over(&self, live: &Live) -> bool {
        live.shared.is_replaced() || (live.is_idle() && live.shared.idle_since().elapsed() >= self.parts.settings.tail_linger)
    }

    /// The running log, if there is one to join.
    fn opened(&self, tenant: &TenantId) -> Option<Arc<TenantLog>> {
        let usable = |live: &Live| !live.shared.cancel.is_cancelled();
        if let Some(log) = self.read(|live| live.get(tenant).filter(|each| usable(each)).and_then(|each| each.handle.upgrade())) {
            return Some(log);
        }
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        let each = live.get_mut(tenant).filter(|each| usable(each))?;
        if let Some(log) = each.handle.upgrade() {
            return Some(log);
        }
        let log = Arc::new(TenantLog::new(Arc::clone(&each.shared)));
        each.handle = Arc::downgrade(&log);
        Some(log)
    }

    async fn start_tail(&self, tenant: &TenantId) -> Result<Arc<TenantLog>, StoreError> {
        let Some(stripe) = self.stripe(tenant) else { return Err(StoreError::Unavailable) };
        let _starting = stripe.lock().await;
        if let Some(log) = self.opened(tenant) {
            return Ok(log);
        }
        // What is left has been replaced: its observer must hear of the end before it hears of the new beginning.
        self.stop(tenant).await;
        self.make_room(stripe).await?;
        self.begin(tenant).await
    }

    /// Starts a tail at the committed head. The caller holds the tenant's stripe.
    async fn begin(&self, tenant: &TenantId) -> Result<Arc<TenantLog>, StoreError> {
        if self.cancel.is_cancelled() {
            return Err(StoreError::Unavailable);
        }
        let Some(head) = self.parts.store.head(tenant).await? else { return Err(StoreError::TenantInactive) };
        if let Err(error) = self.parts.observer.tail_started(tenant).await {
            self.parts.observer.tail_stopped(tenant);
            return Err(error);
        }
        let shared = Arc::new(Shared::new(Arc::clone(&self.parts), tenant.clone(), head, self.cancel.child_token()));
        let log = Arc::new(TenantLog::new(Arc::clone(&shared)));
        let task = self.tracker.spawn(tail::run(Arc::clone(&shared)));
        let live = Live { shared: Arc::clone(&shared), handle: Arc::downgrade(&log), task };
        self.live.write().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone(), live);
        // What was committed since the head was read, and before the tail could be offered it, reached no inbox.
        shared.inbox.look_for(Seq::MAX);
        Ok(log)
    }

    /// Takes a tail out and waits for its end. The caller holds the tenant's stripe.
    async fn stop(&self, tenant: &TenantId) {
        let gone = self.live.write().unwrap_or_else(PoisonError::into_inner).remove(tenant);
        if let Some(gone) = gone {
            gone.shared.cancel.cancel();
            // A tail that panicked has ended too.
            let _ = gone.task.await;
        }
    }

    /// Ends the tail that has been without readers for longest when `sync.max_live_tenants` run. `held` is the stripe that the caller holds.
    async fn make_room(&self, held: &Mutex<()>) -> Result<(), StoreError> {
        let is_full = |live: &HashMap<_, _>| live.len() >= self.parts.settings.max_live_tenants;
        if !self.read(is_full) {
            return Ok(());
        }
        let mut idle: Vec<_> = self.read(|live| {
            live.iter().filter(|(_, each)| each.is_idle()).map(|(tenant, each)| (each.shared.idle_since(), tenant.clone())).collect()
        });
        idle.sort();
        for (_, tenant) in idle {
            let Some(stripe) = self.stripe(&tenant) else { continue };
            // Waiting for another stripe while holding one could go in a circle.
            let guard = if std::ptr::eq(stripe, held) { None } else { Some(stripe.try_lock()) };
            if matches!(guard, Some(Err(_))) || !self.read(|live| live.get(&tenant).is_some_and(Live::is_idle)) {
                continue;
            }
            self.stop(&tenant).await;
            if !self.read(is_full) {
                return Ok(());
            }
        }
        self.parts.metrics.opens_refused.increment();
        Err(StoreError::Overloaded)
    }

    fn stripe(&self, tenant: &TenantId) -> Option<&Mutex<()>> {
        let hash = self.hasher.hash_one(tenant);
        self.stripes.get(hash as usize % Self::STRIPES)
    }

    fn read<T>(&self, look: impl FnOnce(&HashMap<TenantId, Live>) -> T) -> T {
        look(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CommitListener for Logs {
    fn committed(&self, tenant: &TenantId, epoch: SyncEpoch, events: &[Arc<Event>]) {
        let shared = self.read(|live| live.get(tenant).map(|each| Arc::clone(&each.shared)));
        if let Some(shared) = shared {
            shared.committed(epoch, events);
        }
    }
}

impl HintListener for Logs {
    /// A hinted head makes the tail look at the store, if there is one and it has not seen as much.
    fn heard(&self, hint: &Hint) {
        let Hint::Head { tenant, seq } = hint else { return };
        if let Some(shared) = self.read(|live| live.get(tenant).map(|each| Arc::clone(&each.shared))) {
            shared.hinted(*seq);
        }
    }
}
