//! What the application's side and the connection's side of a consumer have in common: the books and the bounded queue.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use domain::{EventId, Seq};
use futures_util::task::AtomicWaker;
use protocol::EventEnvelope;
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};

use super::error::ConsumerError;
use super::ledger::{Arrival, Generation, Ledger, NeverHandedOut};
use super::{Delivery, Link};

/// Bounds of what waits for the application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
    pub(crate) memory: usize,
}

/// One consumer's state, shared by its two sides.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    bounds: Bounds,
    /// Wakes the application when something has arrived.
    application: AtomicWaker,
    /// Wakes the connection when something was taken, acknowledged or let go.
    pub(crate) connection: Notify,
    link: watch::Sender<Link>,
    confirmed: watch::Sender<Confirmed>,
}

/// What the server is known to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Confirmed {
    pub(crate) seq: Seq,
    pub(crate) generation: Generation,
    pub(crate) ended: bool,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    queue: VecDeque<Queued>,
    events: usize,
    bytes: usize,
    flush: bool,
    ended: bool,
}

#[derive(Debug)]
enum Queued {
    Event(Box<Waiting>),
    Notice(ConsumerError),
}

#[derive(Debug)]
struct Waiting {
    event: EventEnvelope,
    raw: Box<RawValue>,
    generation: Generation,
}

/// What the connection has to tell the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckNeed {
    /// Nothing.
    None,
    /// Positions that were not for this consumer; nobody waits for that.
    Cursor,
    /// This many deliveries.
    Deliveries(usize),
    /// Whatever there is, now, with a confirmation.
    Flush,
}

impl Shared {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let ledger = Ledger::new(bounds.memory);
        let confirmed = Confirmed { seq: Seq::ZERO, generation: ledger.generation(), ended: false };
        let state = State { ledger, queue: VecDeque::new(), events: 0, bytes: 0, flush: false, ended: false };
        Self {
            state: Mutex::new(state),
            bounds,
            application: AtomicWaker::new(),
            connection: Notify::new(),
            link: watch::Sender::new(Link::Connecting),
            confirmed: watch::Sender::new(confirmed),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock panics half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The application's side.

    pub(crate) fn poll_next(self: &Arc<Self>, cx: &Context<'_>) -> Poll<Option<Result<Delivery, ConsumerError>>> {
        self.application.register(cx.waker());
        let (queued, ended) = {
            let mut state = self.state();
            (state.pop(), state.ended)
        };
        match queued {
            Some(Queued::Event(waiting)) => {
                self.connection.notify_one();
                let Waiting { event, raw, generation } = *waiting;
                Poll::Ready(Some(Ok(Delivery::new(event, raw, generation, Arc::clone(self)))))
            }
            Some(Queued::Notice(error)) => Poll::Ready(Some(Err(error))),
            None if ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    pub(crate) fn acknowledge(&self, generation: Generation, seq: Seq) {
        // A delivery was handed out, so its position is never above what was.
        let _ = self.state().ledger.acknowledge(generation, seq);
        self.connection.notify_one();
    }

    pub(crate) fn acknowledge_position(&self, seq: Seq) -> Result<(), NeverHandedOut> {
        {
            let mut state = self.state();
            if state.first_waiting().is_some_and(|first| first <= seq) {
                return Err(NeverHandedOut);
            }
            let generation = state.ledger.generation();
            state.ledger.acknowledge(generation, seq)?;
        }
        self.connection.notify_one();
        Ok(())
    }

    pub(crate) fn let_go(&self, generation: Generation, seq: Seq) {
        self.state().ledger.let_go(generation, seq);
    }

    /// Asks for a confirmation; the position that it is to confirm.
    pub(crate) fn request_flush(&self) -> Confirmed {
        let wanted = {
            let mut state = self.state();
            state.flush = true;
            Confirmed { seq: state.ledger.position(), generation: state.ledger.generation(), ended: state.ended }
        };
        self.connection.notify_one();
        wanted
    }

    pub(crate) fn confirmed(&self) -> watch::Receiver<Confirmed> {
        self.confirmed.subscribe()
    }

    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    // The connection's side.

    pub(crate) fn set_link(&self, link: Link) {
        self.link.send_replace(link);
    }

    pub(crate) fn update_link(&self, change: impl FnOnce(&mut Link)) {
        self.link.send_modify(change);
    }

    /// Whether the queue takes another event. One that is larger than the bound is taken when nothing else waits.
    pub(crate) fn has_room(&self) -> bool {
        let state = self.state();
        state.events == 0 || (state.events < self.bounds.events && state.bytes < self.bounds.bytes)
    }

    /// Whether nothing waits for the application.
    pub(crate) fn is_drained(&self) -> bool {
        self.state().events == 0
    }

    /// Whether everything that was handed out is acknowledged.
    pub(crate) fn is_settled(&self) -> bool {
        self.state().ledger.is_settled()
    }

    /// Books an event in, and queues it unless it is a repeat.
    pub(crate) fn arrived(&self, event: EventEnvelope, raw: Box<RawValue>) -> Arrival {
        let arrival = {
            let mut state = self.state();
            let arrival = state.ledger.arrived(event.seq, event.id);
            if matches!(arrival, Arrival::New | Arrival::Again) {
                state.push_event(event, raw);
            }
            arrival
        };
        self.application.wake();
        arrival
    }

    /// Books an event in for a reader that keeps its own cursor: it is done with as soon as it is queued.
    pub(crate) fn arrived_for_reader(&self, event: EventEnvelope, raw: Box<RawValue>) {
        {
            let mut state = self.state();
            let seq: Seq = event.seq;
            let id: EventId = event.id;
            if matches!(state.ledger.arrived(seq, id), Arrival::New | Arrival::Again) {
                state.push_event(event, raw);
            }
            let generation = state.ledger.generation();
            let _ = state.ledger.acknowledge(generation, seq);
        }
        self.application.wake();
    }

    pub(crate) fn checked(&self, seq: Seq) {
        self.state().ledger.checked(seq);
    }

    pub(crate) fn position(&self) -> Seq {
        self.state().ledger.position()
    }

    pub(crate) fn connected(&self, acked: Seq) {
        self.state().ledger.connected(acked);
        self.confirm(acked);
    }

    /// Another history begins: what waits is not handed out any more when the server will send what is left of it again.
    pub(crate) fn resync(&self, head: Seq, keep_waiting: bool) {
        {
            let mut state = self.state();
            state.ledger.resync(head);
            if !keep_waiting {
                state.queue.retain(|queued| matches!(queued, Queued::Notice(_)));
                (state.events, state.bytes) = (0, 0);
            }
        }
        self.confirm(head);
    }

    pub(crate) fn notice(&self, error: ConsumerError) {
        self.state().queue.push_back(Queued::Notice(error));
        self.application.wake();
    }

    pub(crate) fn ack_need(&self) -> AckNeed {
        let state = self.state();
        match state.ledger.unsent() {
            _ if state.flush => AckNeed::Flush,
            0 if state.ledger.is_ahead() => AckNeed::Cursor,
            0 => AckNeed::None,
            deliveries => AckNeed::Deliveries(deliveries),
        }
    }

    /// The position to send, booked as sent. `None` when the server has it.
    pub(crate) fn sending(&self) -> Option<Seq> {
        let mut state = self.state();
        state.flush = false;
        state.ledger.is_ahead().then(|| state.ledger.sending())
    }

    /// What the server was sent, to be confirmed when it answers what is sent next.
    pub(crate) fn sent(&self) -> (Seq, Generation) {
        let state = self.state();
        (state.ledger.sent(), state.ledger.generation())
    }

    pub(crate) fn ack_refused(&self) {
        self.state().ledger.refused();
    }

    /// The server is known to have everything up to `seq`.
    pub(crate) fn confirm(&self, seq: Seq) {
        let generation = self.state().ledger.generation();
        self.confirm_sent((seq, generation));
    }

    /// The server is known to have what [`Shared::sent`] told.
    pub(crate) fn confirm_sent(&self, (seq, generation): (Seq, Generation)) {
        let present = self.state().ledger.generation();
        self.confirmed.send_if_modified(|confirmed| {
            if generation != present {
                return false;
            }
            let newer = generation != confirmed.generation;
            let moved = newer || seq > confirmed.seq;
            if moved {
                (confirmed.seq, confirmed.generation) = (seq, generation);
            }
            moved
        });
    }

    /// Whether something is acknowledged that the server is not known to have.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        let (position, generation) = {
            let state = self.state();
            (state.ledger.position(), state.ledger.generation())
        };
        let confirmed = *self.confirmed.borrow();
        confirmed.generation != generation || position > confirmed.seq
    }

    /// Nothing arrives any more.
    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.application.wake();
        self.confirmed.send_modify(|confirmed| confirmed.ended = true);
        self.link.send_replace(Link::Ended);
    }
}

impl State {
    fn push_event(&mut self, event: EventEnvelope, raw: Box<RawValue>) {
        self.events += 1;
        self.bytes += raw.get().len();
        let generation = self.ledger.generation();
        self.queue.push_back(Queued::Event(Box::new(Waiting { event, raw, generation })));
    }

    /// The first position that waits for the application.
    fn first_waiting(&self) -> Option<Seq> {
        let present = self.ledger.generation();
        self.queue.iter().find_map(|queued| match queued {
            Queued::Event(waiting) if waiting.generation == present => Some(waiting.event.seq),
            _ => None,
        })
    }

    fn pop(&mut self) -> Option<Queued> {
        let queued = self.queue.pop_front();
        if let Some(Queued::Event(waiting)) = &queued {
            self.events = self.events.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(waiting.raw.get().len());
        }
        queued
    }
}
