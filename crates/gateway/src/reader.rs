//! Reading for people and apps, who hold their cursor themselves: pages and streams.

use std::sync::Arc;

use agents::FeedPage;
use authz::{Caller, Denied};
use bytes::Bytes;
use domain::{Seq, StoreError, SyncEpoch};
use protocol::CloseCode;

use crate::{Gateway, Resync};

/// Which page a person or app asks for.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest {
    /// The last position that the reader has; from the lowest retained position when absent.
    pub after: Option<Seq>,
    /// At most this many events, at least 1.
    pub limit: usize,
    /// The epoch that `after` belongs to.
    pub epoch: Option<SyncEpoch>,
}

/// Where a stream begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamStart {
    /// The last position that the reader has; at the head when absent.
    pub after: Option<Seq>,
    /// The epoch that `after` belongs to.
    pub epoch: Option<SyncEpoch>,
}

/// Why a person or app is not served.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The position cannot be served.
    #[error("the position cannot be served")]
    Resync(Resync),
    /// `gateway.max_connections_per_principal` or `gateway.max_connections` is reached.
    #[error("too many streams")]
    TooMany,
    /// The process is shutting down.
    #[error("shutting down")]
    ShuttingDown,
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

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
pub struct EventStream;

impl EventStream {
    /// The epoch that positions of the stream belong to.
    pub fn epoch(&self) -> SyncEpoch {
        todo!()
    }

    /// The next item. Cancel safe. After [`StreamItem::End`] it answers that again.
    pub async fn next(&mut self) -> StreamItem {
        todo!()
    }
}

/// Reads for people and apps.
#[derive(Clone, Debug)]
pub struct EventReader {
    gateway: Arc<Gateway>,
}

impl EventReader {
    /// A reader that shares logs, rights and limits with `gateway`.
    pub fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway }
    }

    /// One page: the events after `after` that the caller may see now, bounded by count and bytes. `next_cursor` is the last position
    /// checked, so that what may not be seen advances the reader too.
    ///
    /// # Errors
    /// [`ReadError`]; below the floor, above the head or in another epoch it is [`ReadError::Resync`].
    pub async fn page(&self, caller: &Caller, request: PageRequest) -> Result<FeedPage, ReadError> {
        let _ = (caller, request, &self.gateway);
        todo!()
    }

    /// A stream that catches up in pages and then stays live.
    ///
    /// # Errors
    /// [`ReadError`]. A position that cannot be served is not an error here but the stream's first item.
    pub async fn stream(&self, caller: &Caller, start: StreamStart) -> Result<EventStream, ReadError> {
        let _ = (caller, start, &self.gateway);
        todo!()
    }
}
