//! The runner of one connection: owns the window and the socket, and is the only one that reads and writes it.
//!
//! It works in turns. A turn looks at what others asked of it, does at most one thing (a batch of frames, a piece of work with the
//! store), and waits only when there is nothing to do. Work with the store runs beside the socket, so that acknowledgements, pings and a
//! close are heard meanwhile.

mod deliver;
mod inbound;
mod timing;
mod track;
mod work;

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;

use authz::{Admission, Caller, Standing};
use bytes::Bytes;
use domain::{Event, Seq};
use protocol::{CatchupComplete, CloseCode, InboxUpdated, Reconnect, ServerFrame};
use sync::{Position, TenantLog};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

pub(crate) use deliver::within;
pub(crate) use inbound::Refused;
pub(crate) use track::Track;
use work::{Job, Retry};

use crate::handshake::{Attached, encode};
use crate::metrics::Counted;
use crate::rate::FrameAllowance;
use crate::registry::Slot;
use crate::resync::Resync;
use crate::session::{Link, Session};
use crate::{Connection, Gateway, Hints, Verdict};

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The peer is gone.
    Gone,
    /// The connection is closed with this code.
    Close(CloseCode),
}

/// What one turn leaves to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Perhaps more.
    Again,
    /// Nothing until something happens.
    Wait,
}

/// Serves one connection.
pub(crate) struct Runner<'g> {
    gateway: &'g Gateway,
    session: Arc<Session>,
    link: Arc<Link>,
    caller: Caller,
    log: Arc<TenantLog>,
    position: watch::Receiver<Position>,
    admission: Admission,
    track: Track,
    /// Events that were read and wait to be offered, in order.
    page: std::vec::IntoIter<Arc<Event>>,
    /// A page was begun and not ended.
    in_page: bool,
    /// Until when the rest of a page is kept for want of budget.
    keep_page_until: Instant,
    /// Events that were offered since the socket was last listened to.
    unheard: usize,
    /// What the hook decided about the first event of the page, when that took waiting.
    verdict: Option<Verdict>,
    /// The position cannot be served; settled before anything is read.
    resync: Option<Resync>,
    /// Work with the store that is under way.
    job: Option<Job>,
    retry: Retry,
    /// Hints about the agent's inbox, if it asked for them.
    hints: Option<Box<dyn Hints>>,
    allowance: FrameAllowance,
    /// When the peer was last heard of.
    heard: Instant,
    ping_at: Instant,
    /// Events above this were accepted while the peer was connected: how long they take to it is measured.
    live_after: Seq,
    /// The history was replaced: nothing that is held belongs to it any more.
    is_outdated: bool,
    _slot: Slot,
    _counted: Counted,
}

impl<'g> Runner<'g> {
    pub(crate) fn new(gateway: &'g Gateway, attached: Attached) -> Self {
        let Attached { session, link, slot, caller, log, admission, track, resync, hints } = attached;
        let now = Instant::now();
        let counted = match &track {
            Track::Consumer(_) => Counted::new(&gateway.metrics, |metrics| &metrics.agent_connections),
            Track::Client(_) => Counted::new(&gateway.metrics, |metrics| &metrics.client_connections),
        };
        Self {
            position: log.subscribe(),
            page: Vec::new().into_iter(),
            in_page: false,
            keep_page_until: now,
            unheard: 0,
            verdict: None,
            job: None,
            retry: Retry::default(),
            hints,
            allowance: FrameAllowance::new(gateway.settings.max_frames_per_second, now),
            heard: now,
            ping_at: now + gateway.settings.heartbeat_interval,
            live_after: log.position(),
            is_outdated: false,
            _slot: slot,
            _counted: counted,
            gateway,
            session,
            link,
            caller,
            log,
            admission,
            track,
            resync,
        }
    }

    /// Serves the peer until the end, which is answered after what is held has been saved.
    pub(crate) async fn run<C: Connection>(&mut self, connection: &mut C) -> End {
        let end = self.serve(connection).await;
        Box::pin(self.leave(end)).await;
        end
    }

    async fn serve<C: Connection>(&mut self, connection: &mut C) -> End {
        let mut timer = pin!(sleep_until(self.next_instant()));
        loop {
            let turn = match self.turn(connection).await {
                Ok(Turn::Wait) => self.wait(connection, timer.as_mut()).await,
                Ok(Turn::Again) => Ok(()),
                Err(end) => Err(end),
            };
            if let Err(end) = turn {
                return end;
            }
        }
    }

    async fn turn<C: Connection>(&mut self, connection: &mut C) -> Result<Turn, End> {
        let position = self.look()?;
        let now = Instant::now();
        self.tend(connection, now).await?;
        if !self.can_send(now) {
            if self.resync.is_none()
                && let Some(head) = self.track.caught_up()
            {
                self.write(connection, [caught_up(head)]).await?;
            }
            if self.job.is_none() && self.retry.is_due(now) {
                self.job = self.next_job(position, now);
            }
            let Some(done) = self.poll_job().await else { return Ok(Turn::Wait) };
            self.apply(connection, done).await?;
        }
        if self.can_send(now) {
            self.send_batch(connection, now).await?;
        }
        if self.unheard >= self.gateway.settings.outbound_queue_max {
            // While a burst goes out, acknowledgements come in.
            self.hear_what_waits(connection).await?;
        }
        Ok(Turn::Again)
    }

    /// Whether events wait that may go out now.
    fn can_send(&mut self, now: Instant) -> bool {
        self.in_page && self.job.is_none() && self.retry.is_due(now) && self.track.budget() > 0
    }

    /// What others asked of this runner meanwhile.
    fn look(&mut self) -> Result<Seq, End> {
        if let Some(code) = self.link.closing() {
            return Err(End::Close(code));
        }
        let position = *self.position.borrow_and_update();
        if position.replaced {
            return Err(self.outdated());
        }
        match self.caller.standing(self.gateway.clock.now()) {
            Standing::Good => {}
            Standing::Unauthenticated => return Err(End::Close(CloseCode::Unauthenticated)),
            Standing::TenantSuspended => return Err(End::Close(CloseCode::TenantSuspended)),
        }
        if let Track::Consumer(window) = &mut self.track
            && window.ack(self.session.position())
        {
            self.session.set_oldest_sent(window.oldest());
        }
        self.session.see_head(position.seq);
        Ok(position.seq)
    }

    /// The history that this runner reads is gone: the peer comes back and hears of the new one.
    fn outdated(&mut self) -> End {
        self.is_outdated = true;
        End::Close(CloseCode::ShuttingDown)
    }

    async fn wait<C: Connection>(&mut self, connection: &mut C, mut timer: Pin<&mut Sleep>) -> Result<(), End> {
        self.unheard = 0;
        if let Track::Consumer(window) = &mut self.track {
            window.trim();
        }
        let next = self.next_instant();
        // A timer that fires too early costs one look; moving it at each dispatch would cost more.
        if timer.is_elapsed() || timer.deadline() > next {
            timer.as_mut().reset(next);
        }
        let heard = tokio::select! {
            biased;
            () = self.link.woken() => None,
            incoming = connection.receive() => Some(Ok(incoming)),
            changed = self.position.changed() => changed.err().map(|_| Err(())),
            done = work::wait_for(&mut self.job) => return self.apply(connection, done).await,
            hint = next_hint(&mut self.hints) => return self.pass_on(connection, hint).await,
            () = timer => None,
        };
        match heard {
            Some(Ok(incoming)) => self.hear(connection, incoming).await,
            Some(Err(())) => Err(self.outdated()),
            None => Ok(()),
        }
    }

    async fn pass_on<C: Connection>(&mut self, connection: &mut C, hint: InboxUpdated) -> Result<(), End> {
        self.gateway.metrics.hints.increment();
        self.write(connection, [encode(&ServerFrame::InboxUpdated(hint))]).await
    }

    /// Saves what is held and lets go of the session, which can be resumed if the end is one after which clients come back.
    pub(crate) async fn leave(&mut self, end: End) {
        if self.is_outdated {
            self.session.outdate();
        }
        let save = self.gateway.saver.flush(&self.session);
        if timeout(self.gateway.settings.write_timeout, save).await.is_err() {
            self.gateway.saver.touch(&self.session);
        }
        let resumable = !self.is_outdated
            && match end {
                End::Gone => true,
                End::Close(code) => code.client_may_reconnect() != Reconnect::Never,
            };
        if !self.gateway.registry.leave(&self.session, &self.link, resumable, Instant::now()) {
            // Replaced, or resumed by another connection: what is the session's is not this one's to touch any more.
            return;
        }
        self.session.set_oldest_sent(None);
        if let Some(key) = self.session.key()
            && end != End::Close(CloseCode::ConsumerReplaced)
        {
            self.gateway.consumers.detached(key, self.session.holder());
        }
    }
}

/// Waits for the next hint; forever without hints. Cancel safe.
async fn next_hint(hints: &mut Option<Box<dyn Hints>>) -> InboxUpdated {
    if let Some(listening) = hints {
        if let Some(hint) = listening.next().await {
            return hint;
        }
        *hints = None;
    }
    pending().await
}

/// The frame `catchup.complete`.
fn caught_up(head: Seq) -> Bytes {
    encode(&ServerFrame::CatchupComplete(CatchupComplete { head_seq: head }))
}
