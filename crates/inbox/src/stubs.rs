//! Interim.
use crate::*;
use authz::Caller;
use domain::*;

const NOT_YET: InboxError = InboxError::Store(StoreError::Unavailable);

impl Inbox {
    /// Polls.
    pub async fn poll(&self, _: &Caller, _: Poll) -> Result<Polled, InboxError> {
        Err(NOT_YET)
    }
    /// Claims.
    pub async fn claim(&self, _: &Caller, _: Claim) -> Result<Vec<(EventId, ItemOutcome<Claimed>)>, InboxError> {
        Err(NOT_YET)
    }
    /// Claims.
    pub async fn claim_next(&self, _: &Caller, _: ClaimNext) -> Result<ClaimedNext, InboxError> {
        Err(NOT_YET)
    }
    /// Acknowledges.
    pub async fn acknowledge(&self, _: &Caller, _: Vec<Acknowledge>) -> Result<Vec<ItemOutcome<Item>>, InboxError> {
        Err(NOT_YET)
    }
    /// Releases.
    pub async fn release(&self, _: &Caller, _: GiveBack) -> Result<Item, InboxError> {
        Err(NOT_YET)
    }
    /// Extends.
    pub async fn heartbeat(&self, _: &Caller, _: Vec<Heartbeat>) -> Result<Vec<ItemOutcome<Extended>>, InboxError> {
        Err(NOT_YET)
    }
    /// Gives back.
    pub async fn give_back_unread(&self, _: &Caller, _: Vec<(EventId, LeaseToken)>) -> Result<(), InboxError> {
        Err(NOT_YET)
    }
    /// Lists.
    pub async fn items(
        &self,
        _: &Caller,
        _: Option<&PrincipalId>,
        _: ItemFilter,
        _: Option<EventId>,
        _: usize,
    ) -> Result<Vec<Item>, InboxError> {
        Err(NOT_YET)
    }
    /// Shows.
    pub async fn item(&self, _: &Caller, _: Option<&PrincipalId>, _: EventId) -> Result<Item, InboxError> {
        Err(NOT_YET)
    }
    /// Shows.
    pub async fn state(&self, _: &Caller, _: Option<&PrincipalId>) -> Result<InboxState, InboxError> {
        Err(NOT_YET)
    }
    /// Redrives.
    pub async fn redrive(&self, _: &Caller, _: Bulk) -> Result<BulkDone, InboxError> {
        Err(NOT_YET)
    }
    /// Discards.
    pub async fn discard(&self, _: &Caller, _: Bulk) -> Result<BulkDone, InboxError> {
        Err(NOT_YET)
    }
    /// Puts aside.
    pub async fn quarantine(&self, _: &Caller, _: &PrincipalId, _: EventId) -> Result<Item, InboxError> {
        Err(NOT_YET)
    }
    /// Releases.
    pub async fn unquarantine(&self, _: &Caller, _: &PrincipalId, _: EventId) -> Result<Item, InboxError> {
        Err(NOT_YET)
    }
    /// Pauses.
    pub async fn pause(&self, _: &Caller, _: &PrincipalId, _: Option<QueueName>) -> Result<InboxState, InboxError> {
        Err(NOT_YET)
    }
    /// Resumes.
    pub async fn resume(&self, _: &Caller, _: &PrincipalId, _: Option<QueueName>) -> Result<InboxState, InboxError> {
        Err(NOT_YET)
    }
    /// Presence.
    pub async fn set_presence(&self, _: &Caller, _: &PrincipalId, _: PresenceChange) -> Result<InboxState, InboxError> {
        Err(NOT_YET)
    }
    /// Policy.
    pub async fn set_policy(&self, _: &Caller, _: &PrincipalId, _: Policy) -> Result<InboxState, InboxError> {
        Err(NOT_YET)
    }
    /// Signals.
    pub async fn signals(
        self: &std::sync::Arc<Self>,
        _: &Caller,
        _: Option<AgentSessionId>,
        _: Option<Seq>,
    ) -> Result<SignalStream, InboxError> {
        Err(NOT_YET)
    }
}

/// Signals.
#[derive(Debug)]
pub struct SignalStream(());
impl SignalStream {
    /// The next.
    pub async fn next(&mut self) -> Option<Signal> {
        None
    }
}
/// The sweeper.
#[derive(Debug)]
pub struct Sweeper(std::sync::Arc<Inbox>);
impl Sweeper {
    /// A sweeper.
    pub const fn new(inbox: std::sync::Arc<Inbox>) -> Self {
        Self(inbox)
    }
    /// Until it is cancelled.
    pub async fn run(&self, stop: tokio_util::sync::CancellationToken) {
        stop.cancelled().await;
    }
}
