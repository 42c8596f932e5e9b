//! What a consumer hands out.

use std::sync::Arc;

use domain::Seq;
use protocol::EventEnvelope;
use serde_json::value::RawValue;

use super::ledger::Generation;
use super::shared::Shared;

/// An event on its way to the application.
///
/// It is *in hand* until it is acknowledged or dropped. What is in hand never comes a second time, also when the server delivers it again;
/// what is dropped without an acknowledgement comes again after the server's `agent.ack_timeout`.
#[derive(Debug)]
pub struct Delivery {
    /// The event, read.
    pub event: EventEnvelope,
    /// The event's JSON text as it came: the record to print or forward.
    pub raw: Box<RawValue>,
    ticket: Ticket,
}

impl Delivery {
    pub(super) fn new(event: EventEnvelope, raw: Box<RawValue>, generation: Generation, shared: Arc<Shared>) -> Self {
        let ticket = Ticket { seq: event.seq, generation, shared };
        Self { event, raw, ticket }
    }

    /// The event's position.
    pub fn seq(&self) -> Seq {
        self.ticket.seq
    }

    /// Whether the server has sent the event to this consumer before, perhaps to another process.
    pub fn redelivered(&self) -> bool {
        self.event.redelivered
    }

    /// Acknowledges this event *and every one before it*. The server is told soon, not at once: see
    /// [`Consumer::flush`](super::Consumer::flush).
    pub fn ack(&self) {
        self.ticket.shared.acknowledge(self.ticket.generation, self.ticket.seq);
    }
}

/// Tells the books when the application lets go.
struct Ticket {
    seq: Seq,
    generation: Generation,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("seq", &self.seq).finish_non_exhaustive()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.shared.let_go(self.generation, self.seq);
    }
}
