//! What the tail of one tenant and its readers share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use domain::{Event, Seq, StoreError, SyncEpoch, TenantId};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::inbox::{Inbox, Offer};
use crate::{Head, HotRing, LogStore, Metrics, Observer, Position, Settings};

/// What every tail of the process uses.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn LogStore>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
}

/// The answer of a reader whose history is gone.
pub(crate) const HISTORY_REPLACED: StoreError = StoreError::Conflict("the log's history was replaced");

/// The state of one tail.
pub(crate) struct Shared {
    pub(crate) parts: Arc<Parts>,
    pub(crate) tenant: TenantId,
    pub(crate) epoch: SyncEpoch,
    pub(crate) inbox: Inbox,
    pub(crate) position: watch::Sender<Position>,
    /// Ends the tail.
    pub(crate) cancel: CancellationToken,
    ring: RwLock<HotRing>,
    /// The hub position once more, for those who only look.
    seq: AtomicU64,
    /// The highest floor that was seen.
    floor: AtomicU64,
    /// Since when nobody holds the log; only looked at while nobody does.
    idle_since: Mutex<Instant>,
}

impl Shared {
    pub(crate) fn new(parts: Arc<Parts>, tenant: TenantId, head: Head, cancel: CancellationToken) -> Self {
        let settings = &parts.settings;
        Self {
            tenant,
            epoch: head.epoch,
            inbox: Inbox::new(settings.tail_queue_max_events),
            position: watch::Sender::new(Position { seq: head.seq, epoch: head.epoch, replaced: false }),
            cancel,
            ring: RwLock::new(HotRing::new(head.seq, settings.ring_max_events, settings.ring_max_bytes)),
            seq: AtomicU64::new(head.seq.get()),
            floor: AtomicU64::new(head.floor.get()),
            idle_since: Mutex::new(Instant::now()),
            parts,
        }
    }

    pub(crate) fn seq(&self) -> Seq {
        Seq::new(self.seq.load(Ordering::Acquire)).unwrap_or(Seq::MAX)
    }

    pub(crate) fn is_replaced(&self) -> bool {
        self.position.borrow().replaced
    }

    /// Takes what was committed by this process, or sees that its history is another.
    pub(crate) fn committed(&self, epoch: SyncEpoch, events: &[Arc<Event>]) {
        if epoch != self.epoch {
            self.mark_replaced();
        } else if self.inbox.offer(events) == Offer::Dropped {
            self.parts.metrics.batches_dropped.increment();
        }
    }

    /// Whether a head row, read when the position was at least `position_before`, still belongs to this history; marks it replaced otherwise.
    pub(crate) fn continues(&self, head: &Head, position_before: Seq) -> bool {
        if head.epoch != self.epoch || head.seq < position_before {
            self.mark_replaced();
            return false;
        }
        self.floor.fetch_max(head.floor.get(), Ordering::Relaxed);
        true
    }

    /// As [`Shared::continues`], and makes the tail look when the head lies above everything that it will see anyway.
    pub(crate) fn note_head(&self, head: &Head, position_before: Seq) -> bool {
        let continues = self.continues(head, position_before);
        if continues && head.seq > self.seq() {
            self.inbox.look_for(head.seq);
        }
        continues
    }

    /// Another node says that so much was committed.
    pub(crate) fn hinted(&self, head: Seq) {
        if head > self.seq() {
            self.parts.metrics.hinted.increment();
            self.inbox.look_for(head);
        }
    }

    /// Makes observed events visible: first the ring, then the position, so that whoever sees the position finds them.
    pub(crate) fn publish(&self, events: &[Arc<Event>]) {
        let Some(last) = events.last() else { return };
        self.ring.write().unwrap_or_else(PoisonError::into_inner).push(events);
        self.seq.store(last.seq.get(), Ordering::Release);
        self.position.send_modify(|position| position.seq = last.seq);
    }

    /// Nothing more comes from this history: tells the readers, drops the ring, ends the tail.
    pub(crate) fn mark_replaced(&self) {
        let is_first = self.position.send_if_modified(|position| !std::mem::replace(&mut position.replaced, true));
        if is_first {
            self.parts.metrics.replaced.increment();
            tracing::warn!(tenant.id = %self.tenant, epoch = %self.epoch, "the log's history was replaced; its readers start afresh");
        }
        let end = self.seq();
        self.ring.write().unwrap_or_else(PoisonError::into_inner).reset(end);
        self.cancel.cancel();
    }

    /// Events from memory; `None` when the store has to be asked.
    pub(crate) fn recent(&self, after: Seq, up_to: Seq, max_events: usize, max_bytes: usize) -> Option<Vec<Arc<Event>>> {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        let events = ring.range(after, up_to, max_events, max_bytes)?;
        (!events.is_empty() || up_to <= ring.end().max(after)).then_some(events)
    }

    /// A head row as the ring's readers see it: what they were given is not below any floor.
    pub(crate) fn head_of_ring(&self, after: Seq) -> Head {
        let floor = Seq::new(self.floor.load(Ordering::Relaxed)).unwrap_or(Seq::MAX);
        Head { seq: self.seq(), floor: floor.min(after.next()), epoch: self.epoch }
    }

    pub(crate) fn bound_ring(&self, max_bytes: usize) {
        self.ring.write().unwrap_or_else(PoisonError::into_inner).bound_bytes(max_bytes);
    }

    pub(crate) fn set_idle(&self) {
        *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(crate) fn idle_since(&self) -> Instant {
        *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
