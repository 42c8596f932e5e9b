//! A named consumer as an async stream with explicit acknowledgement, over WebSocket or over polls.

mod delivery;
mod drive;
mod error;
mod gateway;
mod judge;
mod ledger;
mod options;
mod poll;
mod recent;
mod shared;
mod socket;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use domain::Seq;
use futures_util::Stream;
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use delivery::Delivery;
pub use error::ConsumerError;
pub use options::{ConsumerOptions, ReaderOptions};

use crate::transport::Transport;
use shared::{Confirmed, Shared};

/// How a consumer is connected at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Link {
    /// A connection is being made.
    Connecting,
    /// Events can arrive.
    Connected(Connected),
    /// The connection was lost or refused; another one is made after a pause.
    Waiting {
        /// The pause.
        pause: Duration,
        /// Why, for people.
        cause: String,
    },
    /// Nothing arrives any more.
    Ended,
}

/// What the server said when the connection was made, and since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The log's head at that time.
    pub head_seq: Seq,
    /// Everything up to here was acknowledged at that time.
    pub acked_seq: Seq,
    /// What was there at that time has arrived; from here on events are live.
    pub caught_up: bool,
}

/// The position is above everything that was handed out.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("nothing up to seq {0} was handed out yet")]
pub struct NotHandedOut(pub Seq);

/// A consumer that is to be connected.
#[derive(Debug)]
pub struct ConsumerBuilder {
    transport: Arc<Transport>,
    options: ConsumerOptions,
}

/// A consumer: a stream of deliveries that reconnects by itself.
///
/// It ends after an error that [is terminal](ConsumerError::is_terminal), or when it is closed. Dropping it lets its connection go.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl ConsumerBuilder {
    pub(crate) fn new(transport: Arc<Transport>, options: ConsumerOptions) -> Self {
        Self { transport, options }
    }

    /// Consumes over WebSocket: lowest latency. Returns at once; the connection is made behind the stream. Needs a tokio runtime.
    pub fn connect(self) -> Consumer {
        Consumer::start(self.options.bounds(), |shared, stop| gateway::consume(self.transport, self.options, shared, stop))
    }

    /// Consumes by long polls over REST: for places that WebSockets do not reach. Returns at once. Needs a tokio runtime.
    pub fn poll(self) -> Consumer {
        Consumer::start(self.options.bounds(), |shared, stop| poll::consume(self.transport, self.options, shared, stop))
    }
}

impl Consumer {
    /// Reads as a person or app, from a cursor that the caller keeps.
    pub(crate) fn reader(transport: Arc<Transport>, options: ReaderOptions) -> Self {
        Self::start(options.consumer.bounds(), |shared, stop| gateway::read(transport, options, shared, stop))
    }

    fn start<F: Future<Output = ()> + Send + 'static>(
        bounds: shared::Bounds,
        task: impl FnOnce(Arc<Shared>, CancellationToken) -> F,
    ) -> Self {
        let shared = Arc::new(Shared::new(bounds));
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let task = task(Arc::clone(&shared), stop.clone());
        let ending = EndOnDrop(Arc::clone(&shared));
        tracker.spawn(async move {
            let _ending = ending;
            task.await;
        });
        tracker.close();
        Self { shared, stop, tracker }
    }

    /// The next delivery, or what happened instead. `None` after the end. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Delivery, ConsumerError>> {
        std::future::poll_fn(|cx| self.shared.poll_next(cx)).await
    }

    /// Acknowledges everything up to `seq`. The server is told soon, not at once: see [`Consumer::flush`].
    ///
    /// # Errors
    /// [`NotHandedOut`] when nothing up to `seq` was handed out yet: that would skip what was never seen.
    pub fn ack(&self, seq: Seq) -> Result<(), NotHandedOut> {
        self.shared.acknowledge_position(seq).map_err(|_| NotHandedOut(seq))
    }

    /// Waits until the server is known to have every acknowledgement made so far.
    ///
    /// # Errors
    /// [`ConsumerError::Unconfirmed`] when the consumer ends before.
    pub async fn flush(&self) -> Result<(), ConsumerError> {
        let mut confirmed = self.shared.confirmed();
        let wanted = self.shared.request_flush();
        let reached = |now: &Confirmed| now.ended || now.generation != wanted.generation || now.seq >= wanted.seq;
        // The sender lives as long as this consumer.
        let _ = confirmed.wait_for(reached).await;
        self.judge_confirmed(wanted)
    }

    /// Brings the acknowledgements to the server and lets the consumer go.
    ///
    /// # Errors
    /// [`ConsumerError::Unconfirmed`] when they could not be brought within a few seconds.
    pub async fn close(self) -> Result<(), ConsumerError> {
        let wanted = self.shared.request_flush();
        self.stop.cancel();
        self.tracker.wait().await;
        self.judge_confirmed(wanted)
    }

    /// How it is connected, now and as it changes.
    pub fn link(&self) -> watch::Receiver<Link> {
        self.shared.link()
    }

    /// The position after which a reader goes on. For a consumer, what it may acknowledge at the moment.
    pub fn position(&self) -> Seq {
        self.shared.position()
    }

    fn judge_confirmed(&self, wanted: Confirmed) -> Result<(), ConsumerError> {
        let confirmed = *self.shared.confirmed().borrow();
        if confirmed.generation != wanted.generation || confirmed.seq >= wanted.seq {
            return Ok(());
        }
        Err(ConsumerError::Unconfirmed { confirmed: confirmed.seq })
    }
}

impl Stream for Consumer {
    type Item = Result<Delivery, ConsumerError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.shared.poll_next(cx)
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Ends the stream however the task ends, so that nobody waits for ever.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}
