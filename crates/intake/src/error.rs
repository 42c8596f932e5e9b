//! Why a publish request was refused. Nothing of it was kept.

use authz::Denied;
use domain::{StoreError, UnitError};
use thiserror::Error;

/// Where in a publish request something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the event in the request, from 0; absent when it is the request as a whole.
    pub event: Option<usize>,
    /// The member as a JSON Pointer within the event, e.g. `/recipients/0`; empty for the event itself.
    pub member: String,
}

impl Place {
    /// The JSON Pointer into the request's body: `single` when the body is the one event itself, not `{"events": […]}`.
    pub fn pointer(&self, single: bool) -> String {
        match self.event {
            Some(_) if single => self.member.clone(),
            Some(event) => format!("/events/{event}{}", self.member),
            None => "/events".to_owned(),
        }
    }
}

/// Why a publish request was refused. Nothing of it was kept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PublishError {
    /// The caller may not publish the event.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A member does not have the value it must have.
    #[error("{detail}")]
    Invalid {
        /// Where.
        place: Place,
        /// What is wrong, as a sentence for people.
        detail: String,
    },
    /// A payload is larger than `publish.max_payload_bytes`.
    #[error("{size} bytes; a payload has at most {max}")]
    PayloadTooLarge {
        /// Where.
        place: Place,
        /// Its size in bytes.
        size: usize,
        /// `publish.max_payload_bytes`.
        max: usize,
    },
    /// A recipient does not exist, is disabled or is no agent.
    #[error("there is no such agent, or it is disabled")]
    RecipientUnknown {
        /// Where.
        place: Place,
    },
    /// The deduplication key of an event stands for another body.
    #[error("the deduplication key stands for another body")]
    DeduplicationConflict {
        /// Where.
        place: Place,
    },
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PublishError {
    /// Where, when it is about a member.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Invalid { place, .. }
            | Self::PayloadTooLarge { place, .. }
            | Self::RecipientUnknown { place }
            | Self::DeduplicationConflict { place } => Some(place),
            Self::Denied(_) | Self::Store(_) => None,
        }
    }
}

impl UnitError for PublishError {
    fn store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

/// Why scheduled events could not be listed or cancelled.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ScheduleError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// There is no such scheduled event (any more).
    #[error("there is no such scheduled event")]
    NotFound,
    /// It was appended while it was to be cancelled.
    #[error("the event has just been appended")]
    AlreadyPromoted,
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UnitError for ScheduleError {
    fn store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}
