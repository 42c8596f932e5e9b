//! One poll: take the consumer, compute over its row, store, answer; or wait and compute again.

use std::sync::Arc;

use agents::{ConsumerError, ConsumerKey, CursorRow, FeedPage, Holder, Plan, PollRequest, RestPoll, Taken, WindowLimits, WindowWrite};
use authz::{Admission, Caller, Denied, DeniedReason, Standing};
use bytes::Bytes;
use domain::{DeliveryFields, Seq, StoreError, Timestamp};
use protocol::ResyncReason;
use sync::{Head, PageRange, Position, TenantLog};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Feed;
use crate::metrics::Counted;
use crate::reader::{PAGES_PER_REQUEST, reach};
use crate::resync::consumer_resync;
use crate::waiters::Waiter;
use crate::{Gateway, Preparation, Resync, Verdict};

/// How often a poll computes anew because another one stored first. Beyond, it answers empty, and the client comes again.
const COMPUTATIONS: usize = 8;

/// Events that are read at once at least, so that a small budget does not crawl through what is not admitted.
const LEAST_READ: usize = 64;

/// Answers a poll.
pub(super) async fn answer(feed: &Feed, caller: &Caller, request: PollRequest) -> Result<FeedPage, ConsumerError> {
    let gateway = &feed.gateway;
    if gateway.is_draining() {
        return Err(ConsumerError::ShuttingDown);
    }
    let log = gateway.logs.open(&caller.tenant).await?;
    if request.epoch.is_some_and(|epoch| epoch != log.epoch()) {
        let head = log.committed_head().await?;
        return Err(resync_error(Resync::new(ResyncReason::EpochChanged, &head)));
    }
    let admission = gateway.authorizer.admission(caller).await?;
    let key = ConsumerKey { tenant: caller.tenant.clone(), agent: caller.principal.clone(), name: request.name.clone() };
    // Its place among the waiters and its view of the position come before the first look, so that nothing falls in between.
    let waiter = gateway.waiters.enter(&key);
    let position = log.subscribe();
    let wait_until = Instant::now() + request.wait;
    let (taken, taken_at) = (take(gateway, caller, &key).await?, Instant::now());
    let head = Head { seq: taken.head, floor: taken.floor, epoch: taken.epoch };
    if taken.epoch != log.epoch() {
        // The history is being replaced at this moment: the client asks again and finds the new one.
        return Err(StoreError::Unavailable.into());
    }
    reach(&log, taken.head).await;
    let store_now = taken.now;
    let poll = Poll {
        feed,
        caller,
        key: &key,
        log: &log,
        request,
        head: taken.head,
        store_now,
        taken_at,
        wait_until,
        row: taken.row,
        is_unsaved: false,
        admission,
        position,
        waiter,
    };
    if let Some(resync) = consumer_resync(poll.row.acked, &head) {
        return Err(poll.restart(resync).await);
    }
    if poll.request.after.is_some_and(|after| after.next() < head.floor) {
        // The cursor has moved past the gap already, but the answer that said so did not reach this client.
        return Err(resync_error(Resync::new(ResyncReason::Retention, &head)));
    }
    poll.run().await
}

/// Takes the consumer on a task of its own: a client that goes away must not leave holder and session at odds.
async fn take(gateway: &Arc<Gateway>, caller: &Caller, key: &ConsumerKey) -> Result<Taken, ConsumerError> {
    let (engine, caller, key) = (Arc::clone(gateway), caller.clone(), key.clone());
    let taking = gateway.tasks.spawn(async move { engine.take_for_rest(&caller, &key).await });
    taking.await.unwrap_or(Err(ConsumerError::Store(StoreError::Unavailable)))
}

fn resync_error(resync: Resync) -> ConsumerError {
    let reason = match resync.reason {
        ResyncReason::CursorAhead => agents::ResyncReason::CursorAhead,
        ResyncReason::EpochChanged => agents::ResyncReason::EpochChanged,
        ResyncReason::Retention | ResyncReason::TooFarBehind => agents::ResyncReason::Retention,
    };
    ConsumerError::Resync { reason, head: resync.head, epoch: resync.epoch, floor: resync.floor }
}

/// A poll under way.
struct Poll<'a> {
    feed: &'a Feed,
    caller: &'a Caller,
    key: &'a ConsumerKey,
    log: &'a Arc<TenantLog>,
    request: PollRequest,
    head: Seq,
    /// The store's clock at `taken_at`.
    store_now: Timestamp,
    taken_at: Instant,
    wait_until: Instant,
    /// The row as it was read, with what was computed since.
    row: CursorRow,
    /// The row's window differs from the stored one.
    is_unsaved: bool,
    admission: Admission,
    position: watch::Receiver<Position>,
    waiter: Waiter<'a>,
}

/// What was found after the position of the plan.
#[derive(Default)]
struct Found {
    seqs: Vec<Seq>,
    envelopes: Vec<Bytes>,
    redelivered: u64,
    checked: Seq,
    /// The hub position was not reached.
    has_more: bool,
}

impl Poll<'_> {
    async fn run(mut self) -> Result<FeedPage, ConsumerError> {
        let mut computations = 0;
        loop {
            let position = *self.position.borrow_and_update();
            if position.replaced {
                return Err(ConsumerError::Store(StoreError::Unavailable));
            }
            self.check_standing()?;
            self.head = self.head.max(position.seq);
            let now = self.store_now.plus(self.taken_at.elapsed());
            let limits = WindowLimits::from(&self.feed.gateway.agents);
            let mut computed = RestPoll::begin(&self.row, self.request.after, self.head, now, limits)?;
            let mut found = Found::default();
            if let Plan::Read { after, budget } = computed.plan(self.request.limit.max(1)) {
                found = self.find(&computed, after, budget, position.seq).await?;
                // Whoever lost its standing is handed nothing, and what its rights no longer admit does not count as read.
                self.check_standing()?;
                computed.record(&found.seqs, found.checked, now);
            }
            if let Some(window) = computed.change() {
                self.row.window = window;
                self.is_unsaved = true;
            }
            let is_answer = !found.envelopes.is_empty() || found.has_more || self.is_over();
            if !is_answer {
                self.stay_at(&computed);
                let has_news = self.wait(computed.deadline()).await?;
                if (has_news || self.waiter.has_news()) && !self.look_again().await? {
                    return Ok(self.empty());
                }
                continue;
            }
            if self.store().await? {
                return Ok(self.page(&computed, found));
            }
            computations += 1;
            if computations >= COMPUTATIONS || !self.look_again().await? {
                return Ok(self.empty());
            }
        }
    }

    /// Reads and admits events after `after`, up to the hub position, with the rights of this moment.
    async fn find(&mut self, computed: &RestPoll, after: Seq, budget: usize, up_to: Seq) -> Result<Found, ConsumerError> {
        let gateway = &self.feed.gateway;
        let (max_events, max_bytes) = (gateway.settings.catchup_page_size.max(1), gateway.settings.catchup_page_bytes);
        let mut found = Found { checked: after, ..Found::default() };
        let mut bytes = 0_usize;
        for _ in 0..PAGES_PER_REQUEST {
            if found.checked >= up_to || found.seqs.len() >= budget {
                return Ok(found);
            }
            // Not much more than can be delivered: what is read beyond the budget is read again by the next poll.
            let wanted = max_events.min(budget.saturating_sub(found.seqs.len()).max(LEAST_READ));
            let range = PageRange { after: found.checked, up_to: Some(up_to), max_events: wanted, max_bytes };
            let page = self.log.read(range).await?;
            if page.is_below_floor(found.checked) {
                return Err(self.restart(Resync::new(ResyncReason::Retention, &page.head)).await);
            }
            if page.events.is_empty() {
                return Ok(found);
            }
            for event in page.events {
                let is_delivered = self.admission.admits(&event) && self.passes_hook(&event).await?;
                if is_delivered {
                    if found.seqs.len() >= budget || (bytes > 0 && bytes.saturating_add(event.size()) > max_bytes) {
                        // The page is cut: what lies behind its last event is checked again.
                        found.checked = found.seqs.last().copied().unwrap_or(found.checked);
                        return Ok(found);
                    }
                    bytes = bytes.saturating_add(event.size());
                    let fields = DeliveryFields { redelivered: computed.is_redelivery(event.seq) };
                    found.redelivered += u64::from(fields.redelivered);
                    found.seqs.push(event.seq);
                    found.envelopes.push(event.envelope(fields));
                }
                found.checked = event.seq;
            }
        }
        found.has_more = found.checked < up_to;
        Ok(found)
    }

    async fn passes_hook(&self, event: &domain::Event) -> Result<bool, StoreError> {
        let verdict = match self.feed.gateway.hook.prepare(&self.caller.principal, event) {
            Preparation::Ready(verdict) => verdict,
            Preparation::Later(deciding) => deciding.await?,
        };
        Ok(verdict == Verdict::Deliver)
    }

    /// Whether to answer with what there is: the wait is over, or the server stops.
    fn is_over(&self) -> bool {
        Instant::now() >= self.wait_until || self.feed.gateway.is_draining()
    }

    fn check_standing(&self) -> Result<(), ConsumerError> {
        match self.caller.standing(self.feed.gateway.clock.now()) {
            Standing::Good => Ok(()),
            Standing::Unauthenticated => Err(ConsumerError::Unauthenticated),
            Standing::TenantSuspended => Err(Denied::Forbidden(DeniedReason::TenantSuspended).into()),
        }
    }

    /// What this poll has skipped while waiting counts as read by its client, who will be told so: the next computation does not take the
    /// client's `after` for a lost response.
    fn stay_at(&mut self, computed: &RestPoll) {
        if self.request.after.is_some() && !computed.is_unproven() {
            self.request.after = Some(computed.next_cursor());
        }
    }

    /// Waits for events, for news of the consumer, for the oldest deadline on the way, or for the end. Holds no lock. Answers whether there
    /// are news of the consumer.
    async fn wait(&mut self, deadline: Option<Timestamp>) -> Result<bool, ConsumerError> {
        let gateway = &self.feed.gateway;
        let _waiting = Counted::new(&gateway.metrics, |metrics| &metrics.waiting_polls);
        let mut until = self.wait_until;
        if let Some(deadline) = deadline {
            until = until.min(self.taken_at + deadline.since(self.store_now));
        }
        if let Some(end) = self.caller.expires_at {
            until = until.min(Instant::now() + end.since(gateway.clock.now()));
        }
        let mut phase = gateway.phase();
        tokio::select! {
            changed = self.position.changed() => changed.map(|()| false).map_err(|_| ConsumerError::Store(StoreError::Unavailable)),
            () = self.waiter.news() => Ok(true),
            () = phase.draining() => Ok(false),
            () = sleep_until(until) => Ok(false),
        }
    }

    /// Reads the row again; answers whether this poll may go on.
    async fn look_again(&mut self) -> Result<bool, ConsumerError> {
        let Some(status) = self.feed.cursors.status(self.key).await? else { return Err(ConsumerError::Unknown) };
        let is_held = status.row.holder == Some(Holder::Rest);
        self.head = self.head.max(status.head);
        self.row = status.row;
        self.is_unsaved = false;
        Ok(is_held)
    }

    /// Stores the computed window, if it differs from the stored one; answers whether nobody was faster.
    async fn store(&mut self) -> Result<bool, ConsumerError> {
        if !self.is_unsaved {
            return Ok(true);
        }
        let write = WindowWrite { key: self.key.clone(), expected_version: self.row.window_version, window: self.row.window.clone() };
        Ok(self.feed.cursors.write_window(&write).await?)
    }

    /// The position cannot be served: the cursor moves to the head, and the client hears why.
    async fn restart(&self, resync: Resync) -> ConsumerError {
        let gateway = &self.feed.gateway;
        match gateway.consumers.restart(self.key, Holder::Rest, resync.head).await {
            Ok(agents::SaveOutcome::Held(_)) => {
                gateway.metrics.resyncs.increment();
                resync_error(resync)
            }
            Ok(agents::SaveOutcome::Replaced) => ConsumerError::Replaced,
            Err(error) => error,
        }
    }

    fn page(&self, computed: &RestPoll, found: Found) -> FeedPage {
        let metrics = &self.feed.gateway.metrics;
        metrics.polled.add(found.envelopes.len() as u64);
        metrics.redelivered.add(found.redelivered);
        FeedPage {
            events: found.envelopes,
            next_cursor: computed.next_cursor(),
            head: self.head,
            epoch: self.log.epoch(),
            unproven: computed.is_unproven(),
        }
    }

    /// Nothing, because somebody else holds the consumer or was faster: only the acknowledged position is sure.
    fn empty(&self) -> FeedPage {
        FeedPage { events: Vec::new(), next_cursor: self.row.acked, head: self.head, epoch: self.log.epoch(), unproven: true }
    }
}
