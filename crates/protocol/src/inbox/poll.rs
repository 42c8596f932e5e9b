//! `pollInbox`.

use domain::{AgentSessionId, PrincipalId, QueueName, Seq, SyncEpoch, TenantId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::inbox::{InboxItem, Seconds};
use crate::schema;
use crate::strict::present;

/// Which items to show. Showing changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a poll object")]
#[schema(example = json!({
    "tenant_id": "default", "recipient_id": "agent_alpha", "after_seq": 184_389, "limit": 100, "wait_seconds": 25, "include_claimable_only": true
}))]
pub struct PollRequest {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// The token's own agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: Option<PrincipalId>,
    /// The session that polls.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::AgentSessionId)]
    pub session_id: Option<AgentSessionId>,
    /// Items whose `ring_seq` lies above. Zero, which is also the default, means from the oldest.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Seq)]
    pub after_seq: Option<Seq>,
    /// The epoch that `after_seq` belongs to; another one is refused.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::SyncEpoch)]
    pub sync_epoch: Option<SyncEpoch>,
    /// At most this many items; capped to `inbox.poll_max_items`. 100 by default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, minimum = 1)]
    pub limit: Option<std::num::NonZeroU64>,
    /// How long to wait for an item; capped to `inbox.poll_wait_max`. At once by default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Seconds)]
    pub wait_seconds: Option<Seconds>,
    /// Only what is `available`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub include_claimable_only: Option<bool>,
    /// Only of these queues.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<crate::QueueName>)]
    pub queues: Option<Vec<QueueName>>,
}

/// What there is after a position.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "head_seq": 184_392,
    "events": [{
        "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "tenant_id": "default", "recipient_kind": "agent", "recipient_id": "agent_alpha",
        "inbox_seq": 184_390, "ring_seq": 184_390, "event_type": "routing.decision_ready", "summary": "routing.decision_ready",
        "queue": "inbox", "priority": "high", "availability_at_utc": "2026-07-12T16:22:03.000Z",
        "expires_at_utc": "2026-07-19T16:22:03.000Z", "deduplication_key": "route:job_5521:v4", "ack_state": "available",
        "delivery_attempts": 0, "counted_attempts": 0, "max_attempts": 5, "dead_letter_state": "none",
        "created_at_utc": "2026-07-12T16:22:03.000Z"
    }],
    "next_cursor": 184_390, "more_available": true, "sync_epoch": "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10"
}))]
pub struct PollResponse {
    /// The inbox's head.
    #[schema(value_type = schema::Seq)]
    pub head_seq: Seq,
    /// The items, by `ring_seq`.
    pub events: Vec<InboxItem>,
    /// The `ring_seq` of the last item, or what was asked for: the next `after_seq`.
    #[schema(value_type = schema::Seq)]
    pub next_cursor: Seq,
    /// Whether more follow at once.
    pub more_available: bool,
    /// The epoch that the positions belong to.
    #[schema(value_type = schema::SyncEpoch)]
    pub sync_epoch: SyncEpoch,
}
