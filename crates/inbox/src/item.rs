//! Inbox items as they are stored: what never changes after the publish, and the state that the machine moves.

use std::sync::Arc;
use std::time::Duration;

use domain::{AgentSessionId, DeduplicationKey, EventId, EventType, PrincipalId, Priority, QueueName, Seq, Timestamp, Work, WorkFor};
use serde::{Deserialize, Serialize};

use crate::{Generation, LeaseHash};

/// Where an item stands (inbox.md, "State machine").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AckState {
    /// It can be claimed.
    Available,
    /// A worker holds its lease.
    Claimed,
    /// It rests until its next attempt.
    RetryScheduled,
    /// A worker completed it.
    Acked,
    /// Its time ran out before anybody completed it.
    Expired,
    /// Its attempts are used up; it can be redriven.
    DeadLetter,
    /// It was put aside; it can be released.
    Quarantined,
    /// A worker or an operator decided that nobody needs to work on it.
    Discarded,
}

impl AckState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Available,
        Self::Claimed,
        Self::RetryScheduled,
        Self::Acked,
        Self::Expired,
        Self::DeadLetter,
        Self::Quarantined,
        Self::Discarded,
    ];

    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Claimed => "claimed",
            Self::RetryScheduled => "retry_scheduled",
            Self::Acked => "acked",
            Self::Expired => "expired",
            Self::DeadLetter => "dead_letter",
            Self::Quarantined => "quarantined",
            Self::Discarded => "discarded",
        }
    }

    /// The word's state.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Nothing leads out of it: the item leaves the hot table.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Acked | Self::Expired | Self::Discarded)
    }

    /// Somebody is to work on it, works on it, or will: what pollers see and what counts as unacknowledged.
    pub const fn is_current(self) -> bool {
        matches!(self, Self::Available | Self::Claimed | Self::RetryScheduled)
    }
}

/// What became of an item's attempts as a whole (seed 000's second field).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadLetterState {
    /// Nothing out of the ordinary.
    #[default]
    None,
    /// Its attempts are used up.
    DeadLettered,
    /// It was put aside.
    Quarantined,
    /// It was a dead letter and was given new attempts.
    Redriven,
}

impl DeadLetterState {
    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::DeadLettered => "dead_lettered",
            Self::Quarantined => "quarantined",
            Self::Redriven => "redriven",
        }
    }

    /// The word's state.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::None, Self::DeadLettered, Self::Quarantined, Self::Redriven].into_iter().find(|state| state.as_str() == word)
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// The worker completed the item.
    Completed,
    /// The worker discarded the item.
    Discarded,
    /// The worker failed.
    Failed,
    /// The worker gave it back; counted.
    Released,
    /// The worker gave it back for later; not counted.
    Snoozed,
    /// The server took it back for a reason of its own; not counted.
    Interrupted,
    /// The lease or the attempt's deadline passed.
    LeaseExpired,
    /// An operator took it away.
    Revoked,
}

/// One ended attempt, as the history keeps it. Stores hold the history as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number, from 1: the item's `delivery_attempts` at its claim.
    pub number: u32,
    /// The session that claimed, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<AgentSessionId>,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// When the worker was last heard of: the claim or the latest heartbeat.
    pub heartbeat_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The worker's line about it, or the reason of a release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What the worker handed in, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// The bounded, fenced right to work on an item, while somebody has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Until when it lasts without a heartbeat.
    pub until: Timestamp,
    /// Beyond which no heartbeat extends it.
    pub attempt_deadline: Timestamp,
    /// When it was given.
    pub claimed_at: Timestamp,
    /// When the holder was last heard of.
    pub heartbeat_at: Timestamp,
    /// The session that claimed, where it said so.
    pub session: Option<AgentSessionId>,
    /// How long the item rests should this attempt fail, fixed at the claim.
    pub backoff: Duration,
}

impl Lease {
    /// When it ends by itself.
    pub fn ends_at(&self) -> Timestamp {
        self.until.min(self.attempt_deadline)
    }
}

/// The recipient of items as the store numbers it. A deleted agent's number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecipientNumber(i64);

impl RecipientNumber {
    /// Wraps a number as stores keep it.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// What is fixed when an item is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemFacts {
    /// Whose it is.
    pub recipient: RecipientNumber,
    /// The event that made it.
    pub event_id: EventId,
    /// The event's `seq`.
    pub inbox_seq: Seq,
    /// The event's type.
    pub event_type: EventType,
    /// The publisher's own word for the kind of work.
    pub kind: Option<String>,
    /// The publisher's own word for where it comes from.
    pub source: Option<String>,
    /// One line about it.
    pub summary: String,
    /// Where workers look for it.
    pub queue: QueueName,
    /// How urgent it is.
    pub priority: Priority,
    /// By what a repeat of the event is recognised.
    pub deduplication_key: Option<DeduplicationKey>,
    /// From when it could first be claimed.
    pub available_at: Timestamp,
    /// After when nobody needs to work on it any more.
    pub expires_at: Option<Timestamp>,
    /// How many counted attempts there are.
    pub max_attempts: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// Bytes of the event's envelope: what handing it out costs.
    pub envelope_bytes: u32,
}

/// An item: what it is about, and where it stands. Moved only by the machine in this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What is fixed; shared, because an item is copied on its way into the store and out of it.
    pub facts: Arc<ItemFacts>,
    /// The `seq` of the log row that last made it claimable.
    pub ring_seq: Seq,
    /// Where it stands.
    pub state: AckState,
    /// What became of its attempts as a whole.
    pub dead_letter: DeadLetterState,
    /// Its place among what is claimable, ascending; means nothing in other states.
    pub claim_key: Timestamp,
    /// Claims ever.
    pub delivery_attempts: u32,
    /// Attempts that count towards `max_attempts`.
    pub counted_attempts: u32,
    /// How often it was claimed or taken away.
    pub generation: Generation,
    /// Of the latest lease's token; stays when the lease is over, so that a repeated acknowledge is recognised.
    pub lease_hash: Option<LeaseHash>,
    /// Present exactly while it is claimed.
    pub lease: Option<Lease>,
    /// Present exactly while a retry is scheduled.
    pub next_retry_at: Option<Timestamp>,
    /// Ended attempts, oldest first, at most `inbox.history_max` of them.
    pub history: Vec<Attempt>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl Item {
    /// The item that an event leaves for one of its recipients; `seq` is the event's, `work` is what it was published with.
    #[expect(clippy::too_many_arguments, reason = "one argument per column of the event; every caller has them apart")]
    pub fn new(
        recipient: RecipientNumber,
        recipient_work: &WorkFor,
        work: &Work,
        event_id: EventId,
        seq: Seq,
        event_type: &EventType,
        deduplication_key: Option<&DeduplicationKey>,
        created_at: Timestamp,
        envelope_bytes: usize,
    ) -> Self {
        let facts = ItemFacts {
            recipient,
            event_id,
            inbox_seq: seq,
            event_type: event_type.clone(),
            kind: work.kind.clone(),
            source: work.source.clone(),
            summary: work.summary.clone(),
            queue: recipient_work.queue.clone(),
            priority: work.priority,
            deduplication_key: deduplication_key.cloned(),
            available_at: work.available_at,
            expires_at: work.expires_at,
            max_attempts: work.max_attempts,
            created_at,
            envelope_bytes: u32::try_from(envelope_bytes).unwrap_or(u32::MAX),
        };
        Self {
            facts: Arc::new(facts),
            ring_seq: seq,
            state: AckState::Available,
            dead_letter: DeadLetterState::None,
            claim_key: work.claim_key,
            delivery_attempts: 0,
            counted_attempts: 0,
            generation: Generation::default(),
            lease_hash: None,
            lease: None,
            next_retry_at: None,
            history: Vec::new(),
            ended_at: None,
        }
    }

    /// About how many bytes its history has on its way to a client.
    pub fn history_bytes(&self) -> usize {
        /// Instants, numbers and names of members of one attempt.
        const FRAME: usize = 224;
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.history.iter().map(|attempt| FRAME + text(&attempt.summary) + text(&attempt.result)).sum()
    }

    /// When time will next change it: the end of its lease, its retry, its expiry, whichever comes first. Stores index it.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self.state {
            AckState::Claimed => self.lease.as_ref().map(Lease::ends_at),
            AckState::RetryScheduled => [self.next_retry_at, self.facts.expires_at].into_iter().flatten().min(),
            AckState::Available => self.facts.expires_at,
            _ => None,
        }
    }
}

/// An inbox: an agent of a tenant as a recipient.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recipient {
    /// The tenant.
    pub tenant: domain::TenantId,
    /// The agent.
    pub agent: PrincipalId,
}
