//! Reading for people and apps, who hold their cursor themselves: pages and streams.

mod stream;

use std::sync::Arc;
use std::time::Duration;

use agents::FeedPage;
use authz::{Action, Admission, Caller, Denied, DeniedReason, Standing, Target};
use domain::{DeliveryFields, Seq, StoreError, SyncEpoch};
use protocol::ResyncReason;
use sync::{PageRange, TenantLog};
use tokio::time::timeout;

use crate::resync::client_resync;
use crate::{Gateway, Resync};

pub use stream::{EventStream, StreamItem};

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
    /// The caller lost its standing meanwhile: the token expired or was revoked, or the principal is disabled.
    #[error("the credential is not valid any more")]
    Unauthenticated,
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

/// Reads from the log for one request at most: a reader who sees little of a busy log goes on with the next request.
pub(crate) const PAGES_PER_REQUEST: usize = 16;

/// How long a request waits for the hub position to reach what was committed before it.
const TAIL_PATIENCE: Duration = Duration::from_secs(1);

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
        let gateway = &self.gateway;
        let (log, mut admission) = self.open(caller).await?;
        let head = log.committed_head().await?;
        let after = request.after.unwrap_or(head.floor.previous());
        if let Some(resync) = client_resync(after, request.epoch, &head, None) {
            return Err(ReadError::Resync(resync));
        }
        reach(&log, head.seq).await;
        let mut page = Vec::new();
        let (mut read, mut bytes, up_to) = (after, 0, log.position());
        for _ in 0..PAGES_PER_REQUEST {
            let room = request.limit.max(1).saturating_sub(page.len());
            if room == 0 || read >= up_to || bytes >= gateway.settings.catchup_page_bytes {
                break;
            }
            let max_events = gateway.settings.catchup_page_size.max(1);
            let range = PageRange { after: read, up_to: Some(up_to), max_events, max_bytes: gateway.settings.catchup_page_bytes };
            let rows = log.read(range).await?;
            if rows.is_below_floor(read) {
                return Err(ReadError::Resync(Resync::new(ResyncReason::Retention, &rows.head)));
            }
            if rows.events.is_empty() {
                break;
            }
            for event in rows.events {
                if admission.admits(&event) {
                    if page.len() >= request.limit.max(1)
                        || (!page.is_empty() && bytes + event.size() > gateway.settings.catchup_page_bytes)
                    {
                        bytes = usize::MAX;
                        break;
                    }
                    bytes += event.size();
                    page.push(event.envelope(DeliveryFields::default()));
                }
                read = event.seq;
            }
        }
        match caller.standing(gateway.clock.now()) {
            Standing::Good => {}
            Standing::Unauthenticated => return Err(ReadError::Unauthenticated),
            Standing::TenantSuspended => return Err(Denied::Forbidden(DeniedReason::TenantSuspended).into()),
        }
        gateway.metrics.read.add(page.len() as u64);
        let head = head.seq.max(log.position());
        Ok(FeedPage { events: page, next_cursor: read, head, epoch: log.epoch(), unproven: false })
    }

    /// A stream that catches up in pages and then stays live.
    ///
    /// # Errors
    /// [`ReadError`]. A position that cannot be served is not an error here but the stream's first item.
    pub async fn stream(&self, caller: &Caller, start: StreamStart) -> Result<EventStream, ReadError> {
        EventStream::open(self, caller, start).await
    }

    async fn open(&self, caller: &Caller) -> Result<(Arc<TenantLog>, Admission), ReadError> {
        if self.gateway.is_draining() {
            return Err(ReadError::ShuttingDown);
        }
        self.gateway.authorizer.authorize(caller, Action::EventsRead, Target::Tenant).await?;
        let log = self.gateway.logs.open(&caller.tenant).await?;
        let admission = self.gateway.authorizer.admission(caller).await?;
        Ok((log, admission))
    }
}

/// Waits until what was committed when a request came can be read by it; a tail that lags longer only makes the answer older.
pub(crate) async fn reach(log: &TenantLog, head: Seq) {
    if log.position() < head {
        let _ = timeout(TAIL_PATIENCE, log.wait_for(head)).await;
    }
}
