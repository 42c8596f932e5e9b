//! How the rings of a hook go.

use domain::{EventId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{AttemptResult, Open, RingReason, schema};

/// How the rings of a hook went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"last_status": 503, "last_attempt_at": "2026-07-12T16:22:04.000Z", "consecutive_failures": 2}))]
pub struct HookHealth {
    /// The HTTP status of the last attempt. Absent when it brought none, or before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u16)]
    pub last_status: Option<u16>,
    /// When the last attempt began. Absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub last_attempt_at: Option<Timestamp>,
    /// Rings that failed since the last one that was delivered. At `hooks.disable_after` the hook is disabled; above zero it is rung one at a
    /// time.
    pub consecutive_failures: u32,
}

/// One attempt to ring, as the delivery log keeps it: nothing of the receiver's answer but its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "webhook_id": "msg_5DGhYbWzvFJpq3B0tKx9aQeR1Ls", "reason": "created", "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "attempt": 1,
    "at": "2026-07-12T16:22:04.000Z", "latency_ms": 41, "status": 200, "result": "delivered"
}))]
pub struct HookAttempt {
    /// Which ring.
    #[schema(value_type = schema::WebhookId)]
    pub webhook_id: String,
    /// Why it was rung.
    #[schema(value_type = RingReason)]
    pub reason: Open<RingReason>,
    /// The item that it was about. Absent where it was about none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::EventId)]
    pub event_id: Option<EventId>,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// When it began.
    #[schema(value_type = schema::Timestamp)]
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub latency_ms: u64,
    /// The HTTP status. Absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u16)]
    pub status: Option<u16>,
    /// What it brought.
    #[schema(value_type = AttemptResult)]
    pub result: Open<AttemptResult>,
}
