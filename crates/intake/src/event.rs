//! An event as a publisher hands it in.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use domain::{ChannelRef, DeduplicationKey, EventType, PayloadRef, PrincipalId, Priority, QueueName, Timestamp};
use serde_json::value::RawValue;

/// An agent that is to work on an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecipient {
    /// The agent.
    pub id: PrincipalId,
    /// The queue that its item is put in; `inbox` when absent.
    pub queue: Option<QueueName>,
}

/// An event as a publisher hands it in (stream.md, "Event envelope"). What is absent was not given.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// What happened.
    pub event_type: EventType,
    /// Where.
    pub channel: Option<ChannelRef>,
    /// Who sees it beside the readers of the channel.
    pub audience: Vec<PrincipalId>,
    /// Agents that are to work on it; they join the audience.
    pub recipients: Vec<NewRecipient>,
    /// How urgent it is.
    pub priority: Option<Priority>,
    /// When it is to appear.
    pub available_at: Option<Timestamp>,
    /// After when nobody needs to work on it any more.
    pub expires_at: Option<Timestamp>,
    /// How often working on it is tried.
    pub max_attempts: Option<NonZeroU32>,
    /// The publisher's own word for the kind of work.
    pub kind: Option<String>,
    /// The publisher's own word for where it comes from.
    pub source: Option<String>,
    /// One line about it.
    pub summary: Option<String>,
    /// By what a repeat is recognised.
    pub deduplication_key: Option<DeduplicationKey>,
    /// References by which a receiver finds what belongs together.
    pub correlation: Option<BTreeMap<String, String>>,
    /// What it is about.
    pub payload_ref: Option<PayloadRef>,
    /// Any JSON object, kept verbatim.
    pub payload: Option<Box<RawValue>>,
}

impl NewEvent {
    /// An event of this type and nothing else.
    pub const fn new(event_type: EventType) -> Self {
        Self {
            event_type,
            channel: None,
            audience: Vec::new(),
            recipients: Vec::new(),
            priority: None,
            available_at: None,
            expires_at: None,
            max_attempts: None,
            kind: None,
            source: None,
            summary: None,
            deduplication_key: None,
            correlation: None,
            payload_ref: None,
            payload: None,
        }
    }

    /// Audience and recipients, each once, in the order of their first naming.
    pub(crate) fn addressees(&self) -> Vec<PrincipalId> {
        let mut all = Vec::with_capacity(self.audience.len() + self.recipients.len());
        for principal in self.audience.iter().chain(self.recipients.iter().map(|recipient| &recipient.id)) {
            if !all.contains(principal) {
                all.push(principal.clone());
            }
        }
        all
    }
}
