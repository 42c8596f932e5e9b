//! A stream of events for one person or app, as server-sent events carry it.

use std::sync::Arc;
use std::time::Duration;

use authz::{Admission, Caller, Standing};
use bytes::Bytes;
use domain::{DeliveryFields, Event, Seq, StoreError, SyncEpoch};
use protocol::{CloseCode, ResyncReason};
use sync::{Page, PageRange, Position, TenantLog};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{EventReader, ReadError, StreamStart};
use crate::metrics::Counted;
use crate::phase::PhaseWatch;
use crate::progress::Progress;
use crate::registry::Slot;
use crate::resync::client_resync;
use crate::{Gateway, Resync};

/// The pause before the first repetition of a read that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// What a stream hands out next.
#[derive(Clone, Debug)]
pub enum StreamItem {
    /// An event.
    Event {
        /// Its position.
        seq: Seq,
        /// Its envelope as JSON.
        envelope: Bytes,
    },
    /// Everything up to here has been checked.
    Cursor(Seq),
    /// Nothing happened for `gateway.heartbeat_interval`.
    Heartbeat,
    /// The position could not be served; the stream goes on after `head`.
    Resync(Resync),
    /// Nothing follows. The code says why, as the gateway would close.
    End(CloseCode),
}

/// A stream of the events that one caller may see.
#[derive(Debug)]
pub struct EventStream {
    gateway: Arc<Gateway>,
    caller: Caller,
    log: Arc<TenantLog>,
    position: watch::Receiver<Position>,
    phase: PhaseWatch,
    admission: Admission,
    progress: Progress,
    page: std::vec::IntoIter<Arc<Event>>,
    in_page: bool,
    resync: Option<Resync>,
    /// Where a stream begins that named no position: told first, so that who loses the connection before the first event can go on there.
    begin: Option<Seq>,
    ended: Option<CloseCode>,
    /// When to say that nothing happened.
    heartbeat_at: Instant,
    retry_at: Option<Instant>,
    failures: u32,
    _slot: Slot,
    _counted: Counted,
}

impl EventStream {
    pub(super) async fn open(reader: &EventReader, caller: &Caller, start: StreamStart) -> Result<Self, ReadError> {
        let gateway = &reader.gateway;
        let slot = gateway.registry.reserve(&(caller.tenant.clone(), caller.principal.clone())).ok_or(ReadError::TooMany)?;
        let open = gateway.metrics.streams.get() + gateway.metrics.connections.get();
        if usize::try_from(open).unwrap_or(usize::MAX) >= gateway.settings.max_connections {
            return Err(ReadError::TooMany);
        }
        let counted = Counted::new(&gateway.metrics, |metrics| &metrics.streams);
        let (log, admission) = reader.open(caller).await?;
        let head = log.committed_head().await?;
        let (cursor, every) = (start.after.unwrap_or(head.seq), gateway.settings.cursor_advance_every);
        let resync = client_resync(cursor, start.epoch, &head, Some(gateway.settings.max_catchup_events));
        let progress = if resync.is_some() { Progress::live(head.seq, every) } else { Progress::catching_up(cursor, head.seq, every) };
        Ok(Self {
            position: log.subscribe(),
            phase: gateway.phase(),
            page: Vec::new().into_iter(),
            in_page: false,
            ended: None,
            heartbeat_at: Instant::now() + gateway.settings.heartbeat_interval,
            retry_at: None,
            failures: 0,
            gateway: Arc::clone(gateway),
            caller: caller.clone(),
            log,
            admission,
            progress,
            resync,
            begin: start.after.is_none().then_some(cursor),
            _slot: slot,
            _counted: counted,
        })
    }

    /// The epoch that positions of the stream belong to.
    pub fn epoch(&self) -> SyncEpoch {
        self.log.epoch()
    }

    /// The next item. Cancel safe. After [`StreamItem::End`] it answers that again.
    pub async fn next(&mut self) -> StreamItem {
        let item = loop {
            if let Some(code) = self.ended.or_else(|| self.lost_standing()) {
                self.ended = Some(code);
                break StreamItem::End(code);
            }
            if let Some(begin) = self.begin.take() {
                break StreamItem::Cursor(begin);
            }
            if let Some(resync) = self.resync.take() {
                self.gateway.metrics.resyncs.increment();
                break StreamItem::Resync(resync);
            }
            if self.in_page {
                if let Some(item) = self.next_of_page() {
                    break item;
                }
                continue;
            }
            if let Some(item) = self.wait_for_page().await {
                break item;
            }
        };
        self.heartbeat_at = Instant::now() + self.gateway.settings.heartbeat_interval;
        item
    }

    fn lost_standing(&mut self) -> Option<CloseCode> {
        if self.position.borrow_and_update().replaced {
            return Some(CloseCode::ShuttingDown);
        }
        match self.caller.standing(self.gateway.clock.now()) {
            Standing::Good => None,
            Standing::Unauthenticated => Some(CloseCode::Unauthenticated),
            Standing::TenantSuspended => Some(CloseCode::TenantSuspended),
        }
    }

    /// The next admitted event of the page, or the cursor that ends it.
    fn next_of_page(&mut self) -> Option<StreamItem> {
        for event in self.page.by_ref() {
            if self.admission.admits(&event) {
                self.progress.send(event.seq);
                self.gateway.metrics.read.increment();
                return Some(StreamItem::Event { seq: event.seq, envelope: event.envelope(DeliveryFields::default()) });
            }
            self.progress.pass(event.seq);
        }
        self.in_page = false;
        let due = self.progress.end_page();
        // The end of the catching up is told with a cursor, unless the last event has told it.
        self.progress.caught_up();
        due.map(StreamItem::Cursor)
    }

    /// Reads the next page or waits until there may be one. Answers what is to be said meanwhile.
    async fn wait_for_page(&mut self) -> Option<StreamItem> {
        self.progress.caught_up();
        let settings = &self.gateway.settings;
        let (after, up_to) = (self.progress.read(), self.progress.bound(self.log.position()));
        if after < up_to && self.retry_at.is_none_or(|at| at <= Instant::now()) {
            self.retry_at = None;
            let range = PageRange {
                after,
                up_to: Some(up_to),
                max_events: settings.catchup_page_size.max(1),
                max_bytes: settings.catchup_page_bytes,
            };
            let read = tokio::select! {
                read = self.log.read(range) => read,
                code = self.phase.closed() => return self.end(code),
            };
            return self.begin_page(read);
        }
        let mut wake_at = self.retry_at.map_or(self.heartbeat_at, |at| at.min(self.heartbeat_at));
        if let Some(end) = self.caller.expires_at {
            wake_at = wake_at.min(Instant::now() + end.since(self.gateway.clock.now()).max(Duration::from_millis(1)));
        }
        tokio::select! {
            code = self.phase.closed() => self.end(code),
            changed = self.position.changed() => if changed.is_err() { self.end(CloseCode::ShuttingDown) } else { None },
            () = sleep_until(wake_at) => (Instant::now() >= self.heartbeat_at).then_some(StreamItem::Heartbeat),
        }
    }

    fn begin_page(&mut self, read: Result<Page, StoreError>) -> Option<StreamItem> {
        match read {
            Ok(page) if page.is_below_floor(self.progress.read()) => {
                self.progress.jump(page.head.seq);
                self.resync = Some(Resync::new(ResyncReason::Retention, &page.head));
            }
            Ok(page) if !page.events.is_empty() => {
                self.page = page.events.into_iter();
                self.in_page = true;
                self.failures = 0;
            }
            Ok(_) => self.try_again(),
            Err(StoreError::Conflict(_)) => return self.end(CloseCode::ShuttingDown),
            Err(StoreError::TenantInactive) => return self.end(CloseCode::TenantSuspended),
            Err(StoreError::Corrupt(detail)) => {
                tracing::error!(tenant.id = %self.caller.tenant, error.cause = %detail, "the log cannot be served: stored data is corrupt");
                return self.end(CloseCode::Internal);
            }
            Err(error) => {
                if self.failures == 0 {
                    tracing::warn!(tenant.id = %self.caller.tenant, error.cause = %error, "a read failed; the stream waits and tries again");
                }
                self.try_again();
            }
        }
        None
    }

    fn try_again(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(self.gateway.settings.read_backoff_cap);
        self.retry_at = Some(Instant::now() + pause);
        self.failures = self.failures.saturating_add(1);
    }

    fn end(&mut self, code: CloseCode) -> Option<StreamItem> {
        self.ended = Some(code);
        None
    }
}
