//! Signals: hints that an inbox has something, for one connected session. Level-triggered: what is sent follows from what is stored, so a lost
//! ring is rung again, and nothing rings for what is already in somebody's hands.

use std::sync::Arc;

use authz::{Action, Caller, Standing};
use domain::{AgentSessionId, EventId, QueueName, Seq, SyncEpoch, Timestamp};
use tokio::time::{Instant, sleep_until};

use crate::bells::{Rung, Waiter, Woken};
use crate::metrics::Counted;
use crate::{Inbox, InboxError, InboxView, PollRange, QueueDigest, QueueFilter, Recipient, RecipientRow, Signal};

/// An open stream is noted as a sign of life every so many `inbox.session_touch_interval`: sessions are many, and are kept for days.
const TOUCH_EVERY: u32 = 4;

/// The signals of one inbox to one session.
pub struct SignalStream {
    inbox: Arc<Inbox>,
    caller: Caller,
    recipient: Recipient,
    session: Option<AgentSessionId>,
    waiter: Waiter,
    _tail: Box<dyn Send + Sync>,
    _counted: Counted,
    /// The head as of the last signal; what the client said at first.
    announced: Seq,
    /// What had rung when the store was last looked at, and whether a look is due all the same.
    seen: Rung,
    must_look: bool,
    /// The client may have passed by what waits: `inbox.resumed`, or items below the cursor that it came with.
    resync: Resync,
    /// While something waits: how often it has been rung again, and when it is to be next.
    repeats: usize,
    again_at: Option<Instant>,
    /// After a failure of the store: when it is looked again. Nothing is repeated because of it.
    retry_at: Option<Instant>,
    /// When it is next noted that the session is there.
    touch_at: Option<Instant>,
}

/// Whether the next signal carries `resync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resync {
    No,
    Yes,
    /// Yes if something waits at or below this cursor.
    Below(Seq),
}

impl std::fmt::Debug for SignalStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignalStream").field("recipient", &self.recipient).field("announced", &self.announced).finish_non_exhaustive()
    }
}

impl Inbox {
    /// A stream of signals to the calling agent. `after` is the head that it has seen; `session` must be one of its own.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `stream.subscribe`; [`InboxError::NotFound`] for a session that is
    /// not the agent's; [`InboxError::LimitReached`] when too many streams and waits are open; [`InboxError::ShuttingDown`]; the store's.
    pub async fn signals(
        self: &Arc<Self>,
        caller: &Caller,
        session: Option<AgentSessionId>,
        after: Option<Seq>,
    ) -> Result<SignalStream, InboxError> {
        let recipient = self.own(caller, Action::StreamSubscribe).await?;
        if self.bells.is_drained() {
            return Err(InboxError::ShuttingDown);
        }
        if let Some(id) = &session {
            let found = self.parts.store.session(&recipient.tenant, id).await?;
            if found.is_none_or(|found| found.recipient != recipient) {
                return Err(InboxError::NotFound);
            }
        }
        let waiter = self.bells.enter(&recipient).map_err(InboxError::LimitReached)?;
        let tail = self.parts.tails.keep(&recipient.tenant).await?;
        if let Some(session) = &session {
            self.write_touch(&recipient, session, after, true).await;
        }
        let touch_at = session.as_ref().and_then(|_| self.next_touch());
        let metrics = &self.parts.metrics;
        metrics.streams_opened.increment();
        Ok(SignalStream {
            inbox: Arc::clone(self),
            caller: caller.clone(),
            recipient,
            session,
            waiter,
            _tail: tail,
            _counted: Counted::new(metrics, |metrics| &metrics.streams),
            announced: after.unwrap_or(Seq::ZERO),
            seen: Rung::default(),
            must_look: true,
            resync: after.map_or(Resync::No, Resync::Below),
            repeats: 0,
            again_at: None,
            retry_at: None,
            touch_at,
        })
    }

    /// The same for a client that comes back: `since` is the head that it has seen, and the history of the log that this belongs to. A head
    /// of another history counts as none.
    ///
    /// # Errors
    /// As [`Inbox::signals`].
    pub async fn signals_since(
        self: &Arc<Self>,
        caller: &Caller,
        session: Option<AgentSessionId>,
        since: Option<(SyncEpoch, Seq)>,
    ) -> Result<SignalStream, InboxError> {
        let Some((epoch, seen)) = since else { return self.signals(caller, session, None).await };
        let recipient = self.own(caller, Action::StreamSubscribe).await?;
        let is_of_this_history = self.view(&recipient).await?.epoch == epoch;
        self.signals(caller, session, is_of_this_history.then_some(seen)).await
    }
}

impl Inbox {
    /// When an open stream is next noted as a sign of life.
    fn next_touch(&self) -> Option<Instant> {
        Instant::now().checked_add(self.settings().session_touch_interval.saturating_mul(TOUCH_EVERY))
    }
}

impl SignalStream {
    /// The next signal; `None` when the caller's standing is lost or the process drains. Dropping the call loses nothing.
    pub async fn next(&mut self) -> Option<Signal> {
        loop {
            if self.inbox.bells.is_drained() || !self.is_good() {
                self.end().await;
                return None;
            }
            self.note_session().await;
            if let Some(signal) = self.look().await {
                return Some(signal);
            }
            if self.wait().await == Woken::Drained {
                self.end().await;
                return None;
            }
        }
    }

    fn is_good(&self) -> bool {
        self.caller.standing(self.inbox.parts.clock.now()) == Standing::Good
    }

    /// Notes that the session is not there any more. A client that just goes away is noticed by its silence.
    async fn end(&self) {
        if let Some(session) = &self.session {
            self.inbox.write_touch(&self.recipient, session, Some(self.announced), false).await;
        }
    }

    /// Notes from time to time that the session is there: an open stream is a sign of life.
    async fn note_session(&mut self) {
        if self.touch_at.is_some_and(|at| at <= Instant::now()) {
            self.inbox.touch(&self.recipient, self.session.as_ref(), None).await;
            self.touch_at = self.inbox.next_touch();
        }
    }

    /// Waits for a ring, the next repetition or note, the next try, or the end of the token.
    async fn wait(&mut self) -> Woken {
        let expiry = self.inbox.end_of_token(&self.caller);
        let look_at = self.retry_at.or(self.again_at);
        let until = [look_at, self.touch_at, expiry].into_iter().flatten().min();
        let timer = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            woken = self.waiter.woken() => woken,
            () = timer => Woken::Rung,
        }
    }

    /// Looks at the store if there may be something to say.
    async fn look(&mut self) -> Option<Signal> {
        let rung = self.waiter.look();
        let repeats = self.again_at.is_some_and(|at| at <= Instant::now());
        let is_waiting = self.retry_at.is_some_and(|at| at > Instant::now());
        let is_asked = rung.news != self.seen.news || self.must_look || repeats;
        if is_waiting || !is_asked {
            return None;
        }
        if rung.resumed != self.seen.resumed {
            self.resync = Resync::Yes;
        }
        let has_news = rung.news != self.seen.news;
        self.seen = rung;
        self.must_look = true;
        let now = self.inbox.parts.clock.now();
        match self.read(now, repeats).await {
            Ok(signal) => {
                (self.must_look, self.retry_at) = (false, None);
                if let (Some(_), true, Some(at)) = (&signal, has_news, rung.at) {
                    self.inbox.parts.metrics.signal_latency.observe(self.inbox.parts.clock.now().since(at));
                }
                signal
            }
            Err(error) => {
                tracing::warn!(tenant.id = %self.recipient.tenant, agent.id = %self.recipient.agent, error = %error, "an inbox could not be read; its signals are late");
                self.retry_at = Some(Instant::now() + self.inbox.settings().store_retry);
                None
            }
        }
    }

    /// What the store says there is to say.
    async fn read(&mut self, now: Timestamp, repeats: bool) -> Result<Option<Signal>, InboxError> {
        let view = self.inbox.view(&self.recipient).await?;
        let Some(row) = view.row.as_ref().filter(|row| row.rings(now)) else {
            // Silent: what comes now is announced on return.
            self.again_at = None;
            return Ok(None);
        };
        let queues = QueueFilter { only: None, except: row.paused_queues.iter().cloned().collect() };
        let most = self.inbox.settings().backlog_count_max;
        let backlog = self.inbox.parts.store.backlog(&self.recipient, &queues, now, most).await?;
        if backlog.available == 0 {
            self.announced = self.announced.max(row.head);
            (self.again_at, self.repeats) = (None, 0);
            return Ok(None);
        }
        let is_new = row.head > self.announced;
        if !is_new && !repeats {
            if self.again_at.is_none() {
                self.schedule(0);
            }
            return Ok(None);
        }
        let resync = self.needs_resync(row, &queues).await?;
        let digest = if resync { self.digest(queues.except, now).await? } else { Vec::new() };
        self.schedule(if is_new { 0 } else { self.repeats + 1 });
        Ok(Some(Signal { resync, queues: digest, ..self.signal(&view, row, backlog.unacked(), now) }))
    }

    /// What waits in each queue but the paused ones. The first waiting item of each says that there is it.
    async fn digest(&self, mut except: Vec<QueueName>, now: Timestamp) -> Result<Vec<QueueDigest>, InboxError> {
        let (store, settings) = (&self.inbox.parts.store, self.inbox.settings());
        let (mut digest, mut after, scan_max) = (Vec::new(), Seq::ZERO, settings.scan_max.max(1));
        while digest.len() < settings.max_queues {
            let queues = QueueFilter { only: None, except: except.clone() };
            let page = store.poll(&self.recipient, &PollRange { after, limit: 1, claimable_only: true, queues, scan_max }).await?;
            after = page.next;
            match page.items.into_iter().next() {
                Some(item) => {
                    let queue = item.facts.queue.clone();
                    let only = QueueFilter { only: Some(vec![queue.clone()]), except: Vec::new() };
                    let available = store.backlog(&self.recipient, &only, now, settings.backlog_count_max).await?.available;
                    except.push(queue.clone());
                    digest.push(QueueDigest { queue, available });
                }
                None if page.more => {}
                None => break,
            }
        }
        Ok(digest)
    }

    async fn needs_resync(&self, row: &RecipientRow, queues: &QueueFilter) -> Result<bool, InboxError> {
        let cursor = match self.resync {
            Resync::No => return Ok(false),
            Resync::Yes => return Ok(true),
            Resync::Below(cursor) => cursor.min(row.head),
        };
        let scan_max = self.inbox.settings().scan_max.max(1);
        let first = PollRange { after: Seq::ZERO, limit: 1, claimable_only: true, queues: queues.clone(), scan_max };
        let page = self.inbox.parts.store.poll(&self.recipient, &first).await?;
        // What could not be looked at may be there: looking once too often is harmless.
        Ok(page.items.first().map_or(page.more && page.next < cursor, |item| item.ring_seq <= cursor))
    }

    /// Has it ring again after a while, if it still waits then.
    fn schedule(&mut self, repeats: usize) {
        let pauses = &self.inbox.settings().ring_again;
        self.repeats = repeats;
        self.again_at = pauses.get(repeats).or(pauses.last()).map(|pause| Instant::now() + *pause);
    }

    fn signal(&mut self, view: &InboxView, row: &RecipientRow, unacked: u64, now: Timestamp) -> Signal {
        self.announced = self.announced.max(row.head);
        self.resync = Resync::No;
        self.waiter.hint();
        let parts = &self.inbox.parts;
        parts.metrics.signals.increment();
        Signal {
            tenant: self.recipient.tenant.clone(),
            recipient: self.recipient.agent.clone(),
            head: row.head,
            epoch: view.epoch,
            unacked,
            resync: false,
            queues: Vec::new(),
            delivery: EventId::new(parts.ids.uuid()),
            sent_at: now,
        }
    }
}
