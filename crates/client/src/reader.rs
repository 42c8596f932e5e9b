//! The log for people and apps as an async stream: it keeps its cursor, catches up, and connects again by itself.

use domain::Seq;

use crate::consumer::{Consumer, ConsumerError, Delivery, Link};

/// A stream of events from a cursor that the caller keeps.
///
/// After an error that [is terminal](ConsumerError::is_terminal) it has ended. Acknowledging a delivery has no meaning here.
#[derive(Debug)]
pub struct EventReader {
    inner: Consumer,
    position: Option<Seq>,
}

impl EventReader {
    pub(crate) fn new(inner: Consumer, cursor: Option<Seq>) -> Self {
        Self { inner, position: cursor }
    }

    /// The next event, or what happened instead. `None` after the end. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Delivery, ConsumerError>> {
        let next = self.inner.next().await;
        match &next {
            Some(Ok(delivery)) => self.position = Some(delivery.seq()),
            Some(Err(ConsumerError::ResyncRequired { head_seq, .. })) => self.position = Some(*head_seq),
            _ => {}
        }
        next
    }

    /// The cursor: the position of the last event that was handed out, after which reading can go on another time.
    pub fn position(&self) -> Option<Seq> {
        self.position
    }

    /// How it is connected, now and as it changes.
    pub fn link(&self) -> tokio::sync::watch::Receiver<Link> {
        self.inner.link()
    }

    /// Ends it in an orderly way.
    pub async fn close(self) {
        // A reader has nothing to bring to the server.
        let _ = self.inner.close().await;
    }
}
