//! How a consumer behaves.

use std::time::Duration;

use domain::{ConsumerName, Seq, SyncEpoch};

use super::shared::Bounds;
use crate::BackoffOptions;

/// How a consumer behaves. [`ConsumerOptions::new`] has what most need.
#[derive(Clone, Debug)]
pub struct ConsumerOptions {
    /// The consumer's name under its agent.
    pub name: ConsumerName,
    /// The most events that wait for the application; then no more are read from the connection.
    pub max_buffered_events: usize,
    /// The most bytes of events that wait for the application. A single event may be larger.
    pub max_buffered_bytes: usize,
    /// The shortest time between two acknowledgements that are sent; within it they are joined.
    pub ack_interval: Duration,
    /// How many acknowledged event ids are remembered to recognise repeats.
    pub remembered_ids: usize,
    /// Pauses between attempts to connect.
    pub backoff: BackoffOptions,
    /// The pause after the server asks for restraint (4008), on top of the usual one.
    pub restraint: Duration,
    /// Over which time clients return that a stopping server has sent away (4013).
    pub drain_spread: Duration,
    /// Polls: the most events of an answer.
    pub poll_limit: u32,
    /// Polls: how long the server waits for an event. It caps what is above its own maximum.
    pub poll_wait: Duration,
    /// Polls: the position up to which everything is known to be done with, where it is known. What an earlier process was sent beyond it then
    /// comes again at once; without it, after `agent.ack_timeout`.
    pub poll_after: Option<Seq>,
    /// How long [`Consumer::close`](super::Consumer::close) tries to bring acknowledgements to the server.
    pub close_timeout: Duration,
}

impl ConsumerOptions {
    /// A consumer of this name.
    pub fn new(name: ConsumerName) -> Self {
        Self {
            name,
            max_buffered_events: 1024,
            max_buffered_bytes: 16 << 20,
            ack_interval: Duration::from_millis(20),
            remembered_ids: 16_384,
            backoff: BackoffOptions::default(),
            restraint: Duration::from_secs(5),
            drain_spread: Duration::from_secs(3),
            poll_limit: 200,
            poll_wait: Duration::from_secs(30),
            poll_after: None,
            close_timeout: Duration::from_secs(5),
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds { events: self.max_buffered_events.max(1), bytes: self.max_buffered_bytes.max(1), memory: self.remembered_ids }
    }
}

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self::new(ConsumerName::default())
    }
}

/// From where a person or app reads.
#[derive(Clone, Debug, Default)]
pub struct ReaderOptions {
    /// The last position that is known; reading begins after it. `None` begins with what comes next.
    pub cursor: Option<Seq>,
    /// The epoch that `cursor` belongs to, when it is known.
    pub sync_epoch: Option<SyncEpoch>,
    /// Everything else; the name does not matter.
    pub consumer: ConsumerOptions,
}
