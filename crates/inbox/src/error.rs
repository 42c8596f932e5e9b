//! Why a use case of the inbox cannot do what it was asked.

use authz::Denied;
use domain::{Seq, StoreError, SyncEpoch, UnitError};
use thiserror::Error;

/// Every refusal of [`crate::Inbox`]. Adapters turn it into a problem in one place.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InboxError {
    /// Authorisation says no.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A member of the request is not acceptable.
    #[error("invalid request at {pointer:?}: {detail}")]
    Invalid {
        /// JSON pointer to the member, empty for the whole.
        pointer: String,
        /// A sentence for people.
        detail: String,
    },
    /// The tenant has no such agent, item or session.
    #[error("not found")]
    NotFound,
    /// The token is not the one of the item's present lease.
    #[error("the lease is lost")]
    LeaseLost,
    /// No arrow leads from the item's state to where it should go.
    #[error("not possible in the item's state")]
    NotInThatState,
    /// Only the session that subscribed last may claim, and this is another.
    #[error("another session is the active one")]
    SessionNotActive,
    /// The cursor lies below what the log retains, or above its head.
    #[error("the cursor is out of range; the oldest current item is at {oldest}")]
    CursorReset {
        /// The lowest `ring_seq` of a current item, else the inbox's head.
        oldest: Seq,
        /// The inbox's head.
        head: Seq,
        /// The identity of the log's history.
        epoch: SyncEpoch,
    },
    /// The cursor belongs to another history of the log.
    #[error("the log has another history")]
    EpochChanged {
        /// The inbox's head.
        head: Seq,
        /// The identity of the log's present history.
        epoch: SyncEpoch,
        /// The lowest retained position of the log.
        floor: Seq,
    },
    /// The `Idempotency-Key` stands for another request.
    #[error("the idempotency key stands for another request")]
    IdempotencyConflict,
    /// A ceiling is reached; names the configuration key or the policy.
    #[error("limit reached: {0}")]
    LimitReached(&'static str),
    /// The process drains.
    #[error("shutting down")]
    ShuttingDown,
    /// The store's failure.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for InboxError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl UnitError for InboxError {
    fn store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl InboxError {
    /// A member that is not acceptable.
    pub(crate) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Invalid { pointer: pointer.into(), detail: detail.into() }
    }
}
