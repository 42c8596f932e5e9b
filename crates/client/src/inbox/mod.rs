//! Working off an inbox: leases that are kept, workers, and signals that say when there is something to do.

mod claims;
mod keeper;
mod lease;
mod settle;
mod signals;
mod sleep;
mod worker;

use std::time::Duration;

use domain::EventId;
use protocol::{HeartbeatItem, HeartbeatRequest, ItemClaim, ItemOutcome, LeaseExtended, Secret};

pub use keeper::{KeptLease, LeaseKeeper, LeaseKeeperOptions};
pub use lease::{LeaseLoss, LeaseTime};
pub use settle::{SNOOZE, Settled, Verdict, WorkReport};
pub use signals::{Ring, SignalOptions, Signals};
pub use worker::{Assignment, InboxWorker, WorkerNews, WorkerOptions, WorkerStop};

use crate::rest::seconds;
use crate::{Client, ClientError};
use lease::Beat;

impl LeaseTime {
    /// The time of a lease that was claimed, counted from when the answer was made. `None` for an item that was not claimed.
    pub fn of_claim(claim: &ItemClaim) -> Option<Self> {
        Self::new(claim.lease_expires_in_ms?, claim.visibility_lease_until_utc?, claim.attempt_deadline_utc?)
    }

    fn of_heartbeat(lease: &LeaseExtended) -> Option<Self> {
        Self::new(lease.lease_expires_in_ms?, lease.visibility_lease_until_utc?, lease.attempt_deadline_utc?)
    }

    /// Both instants are of the server's clock, so only the time between them counts.
    #[expect(clippy::unnecessary_wraps, reason = "its callers are about members that may be absent")]
    fn new(lasts_ms: u64, until: domain::Timestamp, deadline: domain::Timestamp) -> Option<Self> {
        let lasts = Duration::from_millis(lasts_ms);
        Some(Self { lasts, attempt_ends_in: lasts + deadline.since(until) })
    }
}

impl Client {
    /// The signals of the caller's inbox, as a stream that connects again by itself.
    pub fn signals(&self, options: SignalOptions) -> Signals {
        Signals::new(self.clone(), options)
    }

    /// One heartbeat: an answer for each lease, in their order.
    async fn beat(&self, leases: Vec<(EventId, Secret)>, extend_by: Option<Duration>) -> Result<Vec<Beat>, ClientError> {
        let extend_by_seconds = extend_by.map(seconds);
        let leases = leases.into_iter().map(|(event_id, lease_token)| HeartbeatItem { event_id, lease_token, extend_by_seconds });
        let request = HeartbeatRequest { tenant_id: None, recipient_id: None, session_id: None, leases: leases.collect() };
        let answer = self.heartbeat(&request).await?;
        Ok(answer.leases.iter().map(beat_of).collect())
    }
}

fn beat_of(lease: &LeaseExtended) -> Beat {
    match (lease.outcome.known(), LeaseTime::of_heartbeat(lease)) {
        (Some(ItemOutcome::Ok), Some(time)) => Beat::Extended(time),
        _ => Beat::Lost,
    }
}
