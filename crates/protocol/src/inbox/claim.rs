//! `claimItems` and `claimNext`.

use domain::{AgentSessionId, DeduplicationKey, EventId, EventType, PrincipalId, QueueName, Seq, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::inbox::{ItemAttempt, RecipientRef, Seconds};
use crate::strict::present;
use crate::{AckState, Correlation, EventPayloadRef, ItemOutcome, Open, Priority, Secret, schema};

/// Items to claim by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a claim object")]
#[schema(example = json!({
    "tenant_id": "default", "recipient_id": "agent_alpha", "session_id": "sess_01j2m7ygf41b5b2n0t3w3d7sm2",
    "event_ids": ["0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70"], "lease_seconds": 120
}))]
pub struct ClaimRequest {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// The token's own agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: Option<PrincipalId>,
    /// The session that claims.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::AgentSessionId)]
    pub session_id: Option<AgentSessionId>,
    /// Which items: at least one, at most `inbox.claim_max_items`.
    #[schema(value_type = Vec<schema::EventId>, min_items = 1)]
    pub event_ids: Vec<EventId>,
    /// For how long; `inbox.lease_default` when absent, at least `inbox.lease_min`, capped to `inbox.lease_max`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Seconds)]
    pub lease_seconds: Option<Seconds>,
}

/// What comes next, claimed. `{}` claims one item of any queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a claim object")]
#[schema(example = json!({
    "session_id": "sess_01j2m7ygf41b5b2n0t3w3d7sm2", "queues": ["inbox"], "limit": 10, "lease_seconds": 120, "wait_seconds": 25
}))]
pub struct ClaimNextRequest {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// The token's own agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: Option<PrincipalId>,
    /// The session that claims.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::AgentSessionId)]
    pub session_id: Option<AgentSessionId>,
    /// Only of these queues.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<crate::QueueName>)]
    pub queues: Option<Vec<QueueName>>,
    /// At most this many items; capped to `inbox.claim_max_items`. One by default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, minimum = 1)]
    pub limit: Option<std::num::NonZeroU64>,
    /// For how long; `inbox.lease_default` when absent, at least `inbox.lease_min`, capped to `inbox.lease_max`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Seconds)]
    pub lease_seconds: Option<Seconds>,
    /// How long to wait for an item; capped to `inbox.poll_wait_max`. At once by default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Seconds)]
    pub wait_seconds: Option<Seconds>,
}

/// What became of one item of a claim. All members but the first two are present exactly with `outcome: ok`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "outcome": "ok", "inbox_seq": 184_392, "event_type": "meeting_room.message_posted",
    "summary": "Sam asks about the invoice", "queue": "inbox", "priority": "normal", "ack_state": "claimed", "delivery_attempts": 1,
    "max_attempts": 5, "lease_token": "Qk5v…", "visibility_lease_until_utc": "2026-07-12T16:24:12.000Z", "lease_expires_in_ms": 120_000,
    "attempt_deadline_utc": "2026-07-13T04:22:12.000Z", "created_at_utc": "2026-07-12T16:22:03.000Z",
    "availability_at_utc": "2026-07-12T16:22:03.000Z", "correlation": {"meeting_room_id": "room_7"},
    "payload_ref": {"kind": "meeting_room_message", "id": "920155"}, "payload": {"text": "…"}
}))]
pub struct ItemClaim {
    /// The item.
    #[schema(value_type = schema::EventId)]
    pub event_id: EventId,
    /// What became of it.
    #[schema(value_type = ItemOutcome)]
    pub outcome: Open<ItemOutcome>,
    /// The event's `seq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Seq)]
    pub inbox_seq: Option<Seq>,
    /// The event's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::EventType)]
    pub event_type: Option<EventType>,
    /// The publisher's own word for the kind of work. Absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub kind: Option<String>,
    /// The publisher's own word for where it comes from. Absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub source: Option<String>,
    /// One line about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub summary: Option<String>,
    /// Where it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = crate::QueueName)]
    pub queue: Option<QueueName>,
    /// How urgent it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Priority)]
    pub priority: Option<Open<Priority>>,
    /// By what a repeat of the event is recognised. Absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::DeduplicationKey)]
    pub deduplication_key: Option<DeduplicationKey>,
    /// Where it stands now: `claimed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = AckState)]
    pub ack_state: Option<Open<AckState>>,
    /// Claims ever, this one included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    pub delivery_attempts: Option<u32>,
    /// How many counted attempts there are before it becomes a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    pub max_attempts: Option<u32>,
    /// The secret of the lease: acknowledge, release and heartbeat name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Secret)]
    pub lease_token: Option<Secret>,
    /// Until when the lease lasts without a heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub visibility_lease_until_utc: Option<Timestamp>,
    /// The same from now, in milliseconds: clocks differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64)]
    pub lease_expires_in_ms: Option<u64>,
    /// Beyond which no heartbeat extends the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub attempt_deadline_utc: Option<Timestamp>,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub created_at_utc: Option<Timestamp>,
    /// From when it could first be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub availability_at_utc: Option<Timestamp>,
    /// After when nobody needs to work on it any more. Absent where it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub expires_at_utc: Option<Timestamp>,
    /// Ended attempts, oldest first; present when it was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<ItemAttempt>)]
    pub prior_attempts: Option<Vec<ItemAttempt>>,
    /// References by which a receiver finds what belongs together. Absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Correlation)]
    pub correlation: Option<Correlation>,
    /// What it is about, in the publisher's own system. Absent where the publisher named nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = EventPayloadRef)]
    pub payload_ref: Option<EventPayloadRef>,
    /// What the publisher sent, verbatim. Absent where it sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Payload)]
    pub payload: Option<Box<RawValue>>,
}

/// What became of a claim, in the order of the request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "claims": [{
        "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "outcome": "ok", "inbox_seq": 184_392,
        "event_type": "meeting_room.message_posted", "summary": "Sam asks about the invoice", "queue": "inbox", "priority": "normal",
        "ack_state": "claimed", "delivery_attempts": 1, "max_attempts": 5, "lease_token": "Qk5v…",
        "visibility_lease_until_utc": "2026-07-12T16:24:12.000Z", "lease_expires_in_ms": 120_000,
        "attempt_deadline_utc": "2026-07-13T04:22:12.000Z", "created_at_utc": "2026-07-12T16:22:03.000Z",
        "availability_at_utc": "2026-07-12T16:22:03.000Z", "payload": {"text": "…"}
    }, {"event_id": "0197f0ab-4521-7227-a2f1-5b34bd0ad973", "outcome": "already_claimed"}]
}))]
pub struct ClaimResponse {
    /// One entry per item.
    pub claims: Vec<ItemClaim>,
}

/// How much waits, each number counted up to `inbox.backlog_count_max`. Of a claim it is what the claim could have had: the queues that it asked for,
/// without paused ones. Of an inbox as a whole it is everything, also what a pause holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"available": 3, "claimed": 1, "resting": 1, "next_due_at_utc": "2026-07-12T16:23:00.000Z"}))]
pub struct ClaimBacklog {
    /// Items that can be claimed, also by whoever comes next.
    pub available: u64,
    /// Items that somebody holds.
    pub claimed: u64,
    /// Items that rest and are not due yet.
    #[serde(default)]
    pub resting: u64,
    /// When something may come back by itself: the first rest that is over, or the first lease to end unless its worker extends it. Absent when
    /// nobody holds anything and nothing rests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub next_due_at_utc: Option<Timestamp>,
}

/// What was claimed, in the order of claim.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "claims": [], "empty": true, "backlog": {"available": 0, "claimed": 1, "resting": 0},
    "recipient": {"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "agent_alpha"}
}))]
pub struct ClaimNextResponse {
    /// The items, each with `outcome: ok`.
    pub claims: Vec<ItemClaim>,
    /// Whether there was none.
    pub empty: bool,
    /// What waits beside them.
    pub backlog: ClaimBacklog,
    /// Whose inbox it is.
    pub recipient: RecipientRef,
}
