//! An item as it is shown.

use domain::{AgentSessionId, DeduplicationKey, EventId, EventType, PrincipalId, QueueName, Seq, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{AckState, AttemptOutcome, DeadLetterState, Open, Priority, RecipientKind, schema};

/// One ended attempt of an item.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "number": 1, "session_id": "sess_01j2m7ygf41b5b2n0t3w3d7sm2", "claimed_at_utc": "2026-07-12T16:22:03.123Z",
    "last_heartbeat_at_utc": "2026-07-12T16:22:43.123Z", "ended_at_utc": "2026-07-12T16:22:50.000Z", "outcome": "failed",
    "summary": "the mail server did not answer"
}))]
pub struct ItemAttempt {
    /// Its number, from 1.
    pub number: u32,
    /// The session that claimed. Absent where the worker named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::AgentSessionId)]
    pub session_id: Option<AgentSessionId>,
    /// When it was claimed.
    #[schema(value_type = schema::Timestamp)]
    pub claimed_at_utc: Timestamp,
    /// When the worker was last heard of.
    #[schema(value_type = schema::Timestamp)]
    pub last_heartbeat_at_utc: Timestamp,
    /// When it ended.
    #[schema(value_type = schema::Timestamp)]
    pub ended_at_utc: Timestamp,
    /// How it ended.
    #[schema(value_type = AttemptOutcome)]
    pub outcome: Open<AttemptOutcome>,
    /// The worker's line about it, or the reason of a release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub summary: Option<String>,
    /// What the worker handed in as `output`, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub output: Option<Box<RawValue>>,
}

/// An item of an inbox. Its payload comes with a claim; it stays in the log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "tenant_id": "default", "recipient_kind": "agent", "recipient_id": "agent_alpha",
    "inbox_seq": 184_392, "ring_seq": 184_392, "event_type": "meeting_room.message_posted", "summary": "Sam asks about the invoice",
    "queue": "inbox", "priority": "normal", "availability_at_utc": "2026-07-12T16:22:03.000Z", "expires_at_utc": "2026-08-11T16:22:03.000Z",
    "deduplication_key": "msg:room_7:920155", "ack_state": "available", "delivery_attempts": 0, "counted_attempts": 0, "max_attempts": 5,
    "dead_letter_state": "none", "created_at_utc": "2026-07-12T16:22:03.000Z"
}))]
pub struct InboxItem {
    /// The event that made it.
    #[schema(value_type = schema::EventId)]
    pub event_id: EventId,
    /// The tenant.
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: TenantId,
    /// The kind of principal that it waits for.
    #[schema(value_type = RecipientKind)]
    pub recipient_kind: Open<RecipientKind>,
    /// Whose it is.
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: PrincipalId,
    /// The event's `seq`.
    #[schema(value_type = schema::Seq)]
    pub inbox_seq: Seq,
    /// The `seq` of the log row that last made it claimable; polls order by it.
    #[schema(value_type = schema::Seq)]
    pub ring_seq: Seq,
    /// The event's type.
    #[schema(value_type = schema::EventType)]
    pub event_type: EventType,
    /// The publisher's own word for the kind of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub kind: Option<String>,
    /// The publisher's own word for where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub source: Option<String>,
    /// One line about it. It informs and never instructs.
    pub summary: String,
    /// Where workers look for it.
    #[schema(value_type = crate::QueueName)]
    pub queue: QueueName,
    /// How urgent it is.
    #[schema(value_type = Priority)]
    pub priority: Open<Priority>,
    /// From when it could first be claimed.
    #[schema(value_type = schema::Timestamp)]
    pub availability_at_utc: Timestamp,
    /// After when nobody needs to work on it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub expires_at_utc: Option<Timestamp>,
    /// By what a repeat of the event is recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::DeduplicationKey)]
    pub deduplication_key: Option<DeduplicationKey>,
    /// Where it stands.
    #[schema(value_type = AckState)]
    pub ack_state: Open<AckState>,
    /// Present and `true` when a pause holds it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Claims ever.
    pub delivery_attempts: u32,
    /// Attempts that count towards `max_attempts`.
    pub counted_attempts: u32,
    /// How many counted attempts there are before it becomes a dead letter.
    pub max_attempts: u32,
    /// While it is claimed: until when the lease lasts without a heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub visibility_lease_until_utc: Option<Timestamp>,
    /// While it is claimed: beyond which no heartbeat extends the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub attempt_deadline_utc: Option<Timestamp>,
    /// While it is claimed: the session that claimed. Absent where the worker named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::AgentSessionId)]
    pub lease_owner_session_id: Option<AgentSessionId>,
    /// While it rests: when its next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub next_retry_at_utc: Option<Timestamp>,
    /// What became of its attempts as a whole.
    #[schema(value_type = DeadLetterState)]
    pub dead_letter_state: Open<DeadLetterState>,
    /// Ended attempts, oldest first, the latest `inbox.history_max` of them. Absent when there is none, and in polls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<ItemAttempt>,
    /// When it was made.
    #[schema(value_type = schema::Timestamp)]
    pub created_at_utc: Timestamp,
    /// When a worker completed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub acked_at_utc: Option<Timestamp>,
    /// When it ended, however it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub ended_at_utc: Option<Timestamp>,
}
