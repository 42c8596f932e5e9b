//! Why an administration use case was not done.

use domain::{StoreError, UnitError};
use thiserror::Error;

use crate::Denied;

/// Why an administration use case was not done. Nothing of it was kept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AdminError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A member does not have the value it must have.
    #[error("{pointer}: {detail}")]
    Invalid {
        /// Where: a JSON pointer into the body, or `#query/<name>`.
        pointer: String,
        /// What is wrong, as a sentence for people.
        detail: String,
    },
    /// There is no such thing.
    #[error("not found")]
    NotFound,
    /// Something with this name exists already.
    #[error("already exists")]
    AlreadyExists,
    /// The ceiling of this configuration key is reached.
    #[error("the ceiling {0} is reached")]
    LimitReached(&'static str),
    /// It is the tenant's last enabled owner.
    #[error("the tenant's last enabled owner")]
    LastOwner,
    /// The idempotency key stands for another request.
    #[error("the idempotency key stands for another request")]
    IdempotencyConflict,
    /// The system's random source failed.
    #[error("the random source failed")]
    Random,
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AdminError {
    pub(super) fn invalid(pointer: &str, detail: impl Into<String>) -> Self {
        Self::Invalid { pointer: pointer.to_owned(), detail: detail.into() }
    }

    /// The error of creating something under a name that may be taken.
    pub(super) fn of_creating(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(_) => Self::AlreadyExists,
            other => Self::Store(other),
        }
    }
}

impl UnitError for AdminError {
    fn store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}
