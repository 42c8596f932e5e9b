//! A consumer over REST: long polls in, acknowledgements out. Any node answers any call.
//!
//! `after` proves that the page before arrived, so it is only ever the cursor of a page that did: never that of an answer that the server
//! marks `unproven`, and the same again after a poll that was lost.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use domain::{BoxFuture, Seq, SyncEpoch};
use protocol::{ConsumerAck, ConsumerState, EventEnvelope, EventPage, Open, ResyncReason, ResyncRequired};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::drive::CURSOR_INTERVAL;
use super::error::ConsumerError;
use super::gateway::protocol_resync;
use super::judge::{Next, refused};
use super::ledger::Generation;
use super::options::ConsumerOptions;
use super::shared::{AckNeed, Shared};
use super::{Connected, Link};
use crate::transport::Transport;
use crate::{Backoff, ClientError, rest};

/// How long the server waits for more while something is unacknowledged: an acknowledgement may make room that a waiting poll does not see.
const BUSY_WAIT: Duration = Duration::from_secs(1);
/// The pause after an empty answer that did not wait, as when a gateway session holds the consumer or a page is unproven.
const IDLE_PAUSE: Duration = Duration::from_millis(250);

/// How long the application has to acknowledge what it took last, before more is asked for.
const GRACE: Duration = Duration::from_millis(100);

/// Runs an agent's consumer until it ends.
pub(super) async fn consume(transport: Arc<Transport>, options: ConsumerOptions, shared: Arc<Shared>, stop: CancellationToken) {
    let backoff = Backoff::new(options.backoff);
    let now = Instant::now();
    let poller = Poller {
        polls: Attempts { backoff, not_before: now },
        acks: Attempts { backoff: Backoff::new(options.backoff), not_before: now },
        transport,
        after: options.poll_after,
        options,
        shared,
        epoch: None,
        cursor_not_before: now,
        drained_at: None,
    };
    poller.run(stop).await;
}

type Poll = BoxFuture<'static, (Result<EventPage, ClientError>, Duration)>;
type Acking = BoxFuture<'static, (Result<ConsumerState, ClientError>, Generation)>;

/// One kind of call: when it may be made again.
struct Attempts {
    backoff: Backoff,
    not_before: Instant,
}

struct Poller {
    transport: Arc<Transport>,
    options: ConsumerOptions,
    shared: Arc<Shared>,
    /// The cursor of the last page that is known to have arrived.
    after: Option<Seq>,
    epoch: Option<SyncEpoch>,
    polls: Attempts,
    acks: Attempts,
    cursor_not_before: Instant,
    /// Since when nothing waits for the application.
    drained_at: Option<Instant>,
}

impl Poller {
    async fn run(mut self, stop: CancellationToken) {
        let (mut poll, mut acking): (Option<Poll>, Option<Acking>) = (None, None);
        loop {
            let now = Instant::now();
            let ack_at = if acking.is_none() { self.ack_at() } else { None };
            let poll_at = if poll.is_none() { self.poll_at(now, acking.is_some()) } else { None };
            if poll_at.is_some_and(|at| at <= now) {
                poll = Some(self.poll());
            }
            if ack_at.is_some_and(|at| at <= now) {
                acking = self.acknowledge();
            }
            let wake_at = [poll_at, ack_at].into_iter().flatten().filter(|at| *at > now).min();
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return self.settle(acking).await,
                (answer, generation) = ready(&mut acking) => { acking = None; self.acknowledged(answer, generation) }
                (answer, waited) = ready(&mut poll) => { poll = None; self.polled(answer, waited) }
                () = self.shared.connection.notified() => Ok(()),
                () = sleep_until(wake_at) => Ok(()),
            };
            if let Err(error) = next {
                return self.shared.notice(error);
            }
        }
    }

    /// When to poll: once nothing waits. Acknowledgements go first, since a poll that reaches the server before them finds no room.
    fn poll_at(&mut self, now: Instant, acking: bool) -> Option<Instant> {
        if !self.shared.is_drained() {
            self.drained_at = None;
            return None;
        }
        let drained_at = *self.drained_at.get_or_insert(now);
        if self.shared.is_settled() {
            let acks_wait = acking || matches!(self.shared.ack_need(), AckNeed::Deliveries(_) | AckNeed::Flush);
            return (!acks_wait).then_some(self.polls.not_before);
        }
        Some(self.polls.not_before.max(drained_at + GRACE))
    }

    fn poll(&self) -> Poll {
        let (transport, name, limit, after) = (Arc::clone(&self.transport), self.options.name.clone(), self.options.poll_limit, self.after);
        let wait = if self.shared.is_settled() { self.options.poll_wait } else { self.options.poll_wait.min(BUSY_WAIT) };
        let epoch = self.epoch;
        Box::pin(async move {
            let begun = Instant::now();
            let answer = rest::poll_consumer(&transport, &name, limit, wait, after, epoch).await;
            (answer, begun.elapsed())
        })
    }

    fn polled(&mut self, answer: Result<EventPage, ClientError>, waited: Duration) -> Result<(), ConsumerError> {
        match answer {
            Ok(page) => self.page(page, waited),
            Err(error) => match error.problem().and_then(protocol_resync) {
                Some(resync) => {
                    self.resync(&resync);
                    Ok(())
                }
                None => self.failed(error, |poller| &mut poller.polls),
            },
        }
    }

    fn page(&mut self, page: EventPage, waited: Duration) -> Result<(), ConsumerError> {
        self.polls.backoff.reset();
        self.polls.not_before = Instant::now();
        if self.epoch.is_some_and(|epoch| epoch != page.sync_epoch) {
            // The log has another history. What waits and `after` belong to the old one; what is left of it comes again.
            let position = page
                .events
                .first()
                .and_then(|first| EventEnvelope::parse(first).ok())
                .map_or(page.next_cursor, |event| event.seq.previous());
            self.begin_epoch(page.sync_epoch, position, None);
        }
        self.epoch = Some(page.sync_epoch);
        if page.events.is_empty() && waited < IDLE_PAUSE {
            self.polls.not_before += IDLE_PAUSE;
        }
        for raw in page.events {
            let event =
                EventEnvelope::parse(&raw).map_err(|error| ConsumerError::Unreadable { cause: format!("not an event: {error}") })?;
            self.shared.arrived(event, raw);
        }
        if !page.unproven {
            self.after = Some(page.next_cursor);
            self.shared.checked(page.next_cursor);
        }
        let acked_seq = self.shared.position();
        let caught_up = page.next_cursor >= page.head_seq;
        self.shared.set_link(Link::Connected(Connected { head_seq: page.head_seq, acked_seq, caught_up }));
        Ok(())
    }

    fn resync(&mut self, resync: &ResyncRequired) {
        let reason = resync.reason.known();
        if reason == Some(ResyncReason::EpochChanged) {
            self.begin_epoch(resync.sync_epoch, resync.head_seq, Some(resync.floor_seq));
        } else {
            self.shared.resync(resync.head_seq, true);
            self.notice(&resync.reason, resync.head_seq, Some(resync.floor_seq));
        }
        self.after = None;
        self.epoch = Some(resync.sync_epoch);
    }

    fn begin_epoch(&mut self, epoch: SyncEpoch, position: Seq, floor: Option<Seq>) {
        self.after = None;
        self.epoch = Some(epoch);
        self.shared.resync(position, false);
        self.notice(&Open::Known(ResyncReason::EpochChanged), position, floor);
    }

    fn notice(&self, reason: &Open<ResyncReason>, head_seq: Seq, floor_seq: Option<Seq>) {
        self.shared.notice(ConsumerError::ResyncRequired { reason: reason.known(), head_seq, floor_seq });
    }

    /// When an acknowledgement is due.
    fn ack_at(&self) -> Option<Instant> {
        let not_before = self.acks.not_before;
        match self.shared.ack_need() {
            AckNeed::None => None,
            AckNeed::Cursor => Some(not_before.max(self.cursor_not_before)),
            AckNeed::Flush | AckNeed::Deliveries(_) => Some(not_before),
        }
    }

    fn acknowledge(&mut self) -> Option<Acking> {
        let now = Instant::now();
        self.acks.not_before = now + self.options.ack_interval;
        self.cursor_not_before = now + CURSOR_INTERVAL;
        let Some(seq) = self.shared.sending() else {
            // The server has answered everything that was sent.
            let (seq, generation) = self.shared.sent();
            self.shared.confirm_sent((seq, generation));
            return None;
        };
        let (_, generation) = self.shared.sent();
        let (transport, name, ack) = (Arc::clone(&self.transport), self.options.name.clone(), ConsumerAck { seq, sync_epoch: self.epoch });
        Some(Box::pin(async move { (rest::ack_consumer(&transport, &name, ack).await, generation) }))
    }

    fn acknowledged(&mut self, answer: Result<ConsumerState, ClientError>, generation: Generation) -> Result<(), ConsumerError> {
        match answer {
            Ok(state) => {
                self.acks.backoff.reset();
                self.shared.confirm_sent((state.acked_seq, generation));
                Ok(())
            }
            Err(error) => {
                self.shared.ack_refused();
                match error.problem().and_then(protocol_resync) {
                    Some(resync) => {
                        self.resync(&resync);
                        Ok(())
                    }
                    None => self.failed(error, |poller| &mut poller.acks),
                }
            }
        }
    }

    fn failed(&mut self, error: ClientError, kind: fn(&mut Self) -> &mut Attempts) -> Result<(), ConsumerError> {
        let attempts = kind(self);
        match refused(error, &mut attempts.backoff) {
            Next::Stop(error) => error.map_or(Ok(()), Err),
            Next::Again { pause, cause, .. } => {
                attempts.not_before = Instant::now() + pause;
                tracing::debug!(cause, pause.ms = pause.as_millis() as u64, "the consumer calls again after a pause");
                self.shared.set_link(Link::Waiting { pause, cause });
                Ok(())
            }
        }
    }

    /// Brings what is acknowledged to the server before the end, as long as there is time.
    async fn settle(mut self, mut acking: Option<Acking>) {
        let deadline = Instant::now() + self.options.close_timeout;
        loop {
            if acking.is_none() {
                match self.shared.ack_need() {
                    AckNeed::None => return,
                    _ => acking = self.acknowledge(),
                }
                if acking.is_none() {
                    return;
                }
            }
            let Ok((answer, generation)) = tokio::time::timeout_at(deadline, ready(&mut acking)).await else { return };
            acking = None;
            let failed = answer.is_err();
            if self.acknowledged(answer, generation).is_err() {
                return;
            }
            if failed && tokio::time::timeout_at(deadline, tokio::time::sleep_until(self.acks.not_before)).await.is_err() {
                return;
            }
        }
    }
}

/// The outcome of a call that is under way; for ever pending when none is.
async fn ready<T>(call: &mut Option<BoxFuture<'static, T>>) -> T {
    match call {
        Some(call) => call.await,
        None => pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}
