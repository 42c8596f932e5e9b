//! `acknowledge`, `release` and `heartbeat`: what a holder of leases does with them.

use domain::{AgentSessionId, EventId, PrincipalId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::inbox::Seconds;
use crate::strict::{objects, present};
use crate::{AckResult, AckState, DeadLetterState, ItemOutcome, Label, Open, Secret, schema};

/// One item to acknowledge.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an acknowledgement")]
#[schema(example = json!({
    "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "lease_token": "Qk5v…", "result": "completed", "summary": "answered",
    "output": {"mail_id": "m-17"}
}))]
pub struct AckItem {
    /// The item.
    #[schema(value_type = schema::EventId)]
    pub event_id: EventId,
    /// The lease's secret.
    pub lease_token: Secret,
    /// How it went.
    pub result: AckResult,
    /// The worker's line about the attempt; at most `inbox.summary_max` bytes.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub summary: Option<String>,
    /// What the worker made: any JSON, kept verbatim; at most `inbox.result_max` bytes.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub output: Option<Box<RawValue>>,
}

/// Items to acknowledge.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an acknowledge object")]
#[schema(example = json!({
    "tenant_id": "default", "recipient_id": "agent_alpha", "session_id": "sess_01j2m7ygf41b5b2n0t3w3d7sm2",
    "acks": [{"event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "lease_token": "Qk5v…", "result": "completed"}]
}))]
pub struct AcknowledgeRequest {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// The token's own agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: Option<PrincipalId>,
    /// The session; informs only, the lease decides.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::AgentSessionId)]
    pub session_id: Option<AgentSessionId>,
    /// The items: at least one.
    #[serde(deserialize_with = "objects")]
    #[schema(min_items = 1)]
    pub acks: Vec<AckItem>,
}

/// What became of one acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "outcome": "ok", "ack_state": "acked", "dead_letter_state": "none"
}))]
pub struct AckDone {
    /// The item.
    #[schema(value_type = schema::EventId)]
    pub event_id: EventId,
    /// `ok`, also for a repeat with the same token and result; else `lease_lost` or `not_found`.
    #[schema(value_type = ItemOutcome)]
    pub outcome: Open<ItemOutcome>,
    /// With `ok`: where the item stands now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = AckState)]
    pub ack_state: Option<Open<AckState>>,
    /// With `ok`: what became of its attempts as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = DeadLetterState)]
    pub dead_letter_state: Option<Open<DeadLetterState>>,
    /// With `ok`, while it rests: when its next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub next_retry_at_utc: Option<Timestamp>,
}

/// What became of the acknowledgements, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "acks": [
        {"event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "outcome": "ok", "ack_state": "acked", "dead_letter_state": "none"},
        {"event_id": "0197f0ab-4521-7227-a2f1-5b34bd0ad973", "outcome": "lease_lost"}
    ]
}))]
pub struct AcknowledgeResponse {
    /// One entry per item.
    pub acks: Vec<AckDone>,
}

/// An item to give back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a release object")]
#[schema(example = json!({
    "tenant_id": "default", "recipient_id": "agent_alpha", "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "lease_token": "Qk5v…",
    "reason": "transient_dependency_failure", "retry_after_seconds": 60
}))]
pub struct ReleaseRequest {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// The token's own agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: Option<PrincipalId>,
    /// The session; informs only, the lease decides.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::AgentSessionId)]
    pub session_id: Option<AgentSessionId>,
    /// The item.
    #[schema(value_type = schema::EventId)]
    pub event_id: EventId,
    /// The lease's secret.
    pub lease_token: Secret,
    /// Why; `snooze` does not count as an attempt. `released` when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Label)]
    pub reason: Option<Label>,
    /// How long the item rests, capped to `inbox.retry_cap`. Claimable at once when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Seconds)]
    pub retry_after_seconds: Option<Seconds>,
}

/// One lease to extend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a lease object")]
#[schema(example = json!({"event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "lease_token": "Qk5v…", "extend_by_seconds": 120}))]
pub struct HeartbeatItem {
    /// The item.
    #[schema(value_type = schema::EventId)]
    pub event_id: EventId,
    /// The lease's secret.
    pub lease_token: Secret,
    /// By how long from now; `inbox.lease_default` when absent, at least `inbox.lease_min`, capped to `inbox.lease_max`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Seconds)]
    pub extend_by_seconds: Option<Seconds>,
}

/// Leases to extend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a heartbeat object")]
#[schema(example = json!({
    "tenant_id": "default", "recipient_id": "agent_alpha", "session_id": "sess_01j2m7ygf41b5b2n0t3w3d7sm2",
    "leases": [{"event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "lease_token": "Qk5v…", "extend_by_seconds": 120}]
}))]
pub struct HeartbeatRequest {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// The token's own agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: Option<PrincipalId>,
    /// The session; informs only, the lease decides.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::AgentSessionId)]
    pub session_id: Option<AgentSessionId>,
    /// The leases: at least one.
    #[serde(deserialize_with = "objects")]
    #[schema(min_items = 1)]
    pub leases: Vec<HeartbeatItem>,
}

/// What became of one lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "outcome": "ok", "visibility_lease_until_utc": "2026-07-12T16:26:12.000Z",
    "lease_expires_in_ms": 120_000, "attempt_deadline_utc": "2026-07-13T04:22:12.000Z"
}))]
pub struct LeaseExtended {
    /// The item.
    #[schema(value_type = schema::EventId)]
    pub event_id: EventId,
    /// `ok`, `lease_lost` (stop working on it) or `not_found`.
    #[schema(value_type = ItemOutcome)]
    pub outcome: Open<ItemOutcome>,
    /// With `ok`: until when the lease lasts without another heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub visibility_lease_until_utc: Option<Timestamp>,
    /// With `ok`: the same from now, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64)]
    pub lease_expires_in_ms: Option<u64>,
    /// With `ok`: beyond which no heartbeat extends the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub attempt_deadline_utc: Option<Timestamp>,
}

/// What became of the leases, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "leases": [{
        "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "outcome": "ok", "visibility_lease_until_utc": "2026-07-12T16:26:12.000Z",
        "lease_expires_in_ms": 120_000, "attempt_deadline_utc": "2026-07-13T04:22:12.000Z"
    }]
}))]
pub struct HeartbeatResponse {
    /// One entry per lease.
    pub leases: Vec<LeaseExtended>,
}
