//! Why a use case of hooks cannot do what it was asked.

use std::time::Duration;

use authz::Denied;
use domain::{StoreError, UnitError};
use thiserror::Error;

use crate::{UrlRefusal, VaultError};

/// Every refusal of [`crate::Hooks`]. Adapters turn it into a problem in one place.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HookError {
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
    /// The URL is not called (`400 url_refused`).
    #[error("the url is refused: {0}")]
    UrlRefused(UrlRefusal),
    /// The tenant has no such agent or hook.
    #[error("not found")]
    NotFound,
    /// A ceiling is reached; names the configuration key.
    #[error("limit reached: {0}")]
    LimitReached(&'static str),
    /// It is to be asked again later: the bound that is reached (a configuration key or a member of the hook), and when there may be room.
    #[error("too often or too much at once: {0}")]
    Busy(&'static str, Duration),
    /// The `Idempotency-Key` was used for another request.
    #[error("the idempotency key was used for another request")]
    IdempotencyConflict,
    /// Not possible in the hook's state; says why.
    #[error("not possible: {0}")]
    NotInThatState(&'static str),
    /// The receiver has not proved that it holds the key; says what went wrong.
    #[error("the receiver is not verified: {}", .0.as_str())]
    Unverified(crate::AttemptClass),
    /// The server has no key to keep secrets with (`503 secrets_unavailable`).
    #[error(transparent)]
    Secrets(#[from] VaultError),
    /// The store's failure.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for HookError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl UnitError for HookError {
    fn store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl HookError {
    /// A member that is not acceptable.
    pub(crate) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Invalid { pointer: pointer.into(), detail: detail.into() }
    }
}
