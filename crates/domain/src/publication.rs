//! What is handed to the log, and what comes back.

use std::sync::Arc;

use bytes::Bytes;

use crate::{Audience, ChannelRef, DeduplicationKey, EventId, EventOrigin, EventType, Seq, Timestamp, Work};

/// SHA-256 of the RFC 8785 form of a published body: tells a repeat from a conflict.
pub type BodyHash = [u8; 32];

/// How a repeat of a publication is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deduplication {
    /// The publisher's key, unique in the tenant within `sync.deduplication_window`.
    pub key: DeduplicationKey,
    /// The body that the key stands for.
    pub body_hash: BodyHash,
    /// Until when the key is remembered.
    pub expires_at: Timestamp,
}

/// An event on its way into the log: everything but its `seq`.
#[derive(Clone, Debug)]
pub struct Publication {
    /// The event's identity.
    pub id: EventId,
    /// What happened.
    pub event_type: EventType,
    /// Where.
    pub channel: Option<ChannelRef>,
    /// To whom.
    pub audience: Audience,
    /// Whose event it is.
    pub origin: EventOrigin,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// See [`crate::Event::body`].
    pub body: Bytes,
    /// Absent when a repeat is a new event.
    pub deduplication: Option<Deduplication>,
    /// What it leaves in inboxes; its `origin` is then [`EventOrigin::Work`].
    pub work: Option<Arc<Work>>,
}

/// What became of one publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is in the log at this position.
    New {
        /// The position.
        seq: Seq,
        /// The event.
        id: EventId,
    },
    /// Its key was known: the first event stands.
    Duplicate {
        /// The first event.
        id: EventId,
        /// The first event's position; absent while that is scheduled.
        seq: Option<Seq>,
    },
    /// Its key was known for another body. Nothing of the request may be kept.
    Conflict,
}
