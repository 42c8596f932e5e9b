//! What an event leaves in the inboxes of its recipients.

use serde::{Deserialize, Serialize};

use crate::{PrincipalId, Priority, QueueName, Timestamp};

/// An agent that is to work on an event, and the queue that its item is put in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkFor {
    /// The agent.
    pub agent: PrincipalId,
    /// The queue.
    pub queue: QueueName,
}

/// The work that an event makes: one inbox item for each recipient, in the same transaction as the log row (inbox.md, "Items").
///
/// Stores keep it as JSON while the event is scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Who is to work on it, each agent once.
    pub recipients: Vec<WorkFor>,
    /// How urgent it is.
    pub priority: Priority,
    /// The publisher's own word for the kind of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The publisher's own word for where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// One line about it.
    pub summary: String,
    /// From when it can be claimed.
    pub available_at: Timestamp,
    /// Its place among what is claimable, ascending: `available_at` less the boost of its priority.
    pub claim_key: Timestamp,
    /// After when nobody needs to work on it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// How many counted attempts there are before it becomes a dead letter.
    pub max_attempts: u32,
}
