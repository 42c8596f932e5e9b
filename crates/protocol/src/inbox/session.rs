//! Sessions of agents: who is told, and how.

use domain::{AgentSessionId, PrincipalId, Seq, SyncEpoch, TenantId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::inbox::RecipientRef;
use crate::strict::present;
use crate::{Label, Open, Transport, schema};

/// A session to open. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a subscription object")]
#[schema(example = json!({
    "tenant_id": "default", "agent_id": "agent_alpha", "device_id": "desktop_01",
    "supported_transports": ["sse", "websocket", "long-poll", "poll"], "last_seen_seq": 184_389, "wants_claims": true
}))]
pub struct SubscribeRequest {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// The token's own agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub agent_id: Option<PrincipalId>,
    /// The device, as the agent names it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Label)]
    pub device_id: Option<Label>,
    /// Transports that the agent has, in the order of its preference. Words that the server does not know are passed over.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Transport>)]
    pub supported_transports: Option<Vec<Open<Transport>>>,
    /// The highest `ring_seq` that the agent has seen.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Seq)]
    pub last_seen_seq: Option<Seq>,
    /// Whether the agent wants to claim: under `single_active_session` it then becomes the session that may.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub wants_claims: Option<bool>,
}

/// A session that was opened. Its id is no credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "session_id": "sess_01j2m7ygf41b5b2n0t3w3d7sm2",
    "recipient": {"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "agent_alpha"}, "current_head_seq": 184_392,
    "sync_epoch": "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10", "recommended_transport": "sse",
    "poll_after_cursor_url": "/v1/inbox/poll-after-cursor", "sse_url": "/v1/streams/sse?session_id=sess_01j2m7ygf41b5b2n0t3w3d7sm2",
    "websocket_url": "wss://doorstep.example.net/v1/gateway", "heartbeat_interval_seconds": 30, "lease_default_seconds": 120,
    "retention_days": 30
}))]
pub struct SessionSubscribed {
    /// The session.
    #[schema(value_type = schema::AgentSessionId)]
    pub session_id: AgentSessionId,
    /// Whose it is.
    pub recipient: RecipientRef,
    /// The inbox's head.
    #[schema(value_type = schema::Seq)]
    pub current_head_seq: Seq,
    /// The epoch that it belongs to.
    #[schema(value_type = schema::SyncEpoch)]
    pub sync_epoch: SyncEpoch,
    /// The transport to use.
    #[schema(value_type = Transport)]
    pub recommended_transport: Open<Transport>,
    /// Where to poll; relative to this server where no public address is configured.
    pub poll_after_cursor_url: String,
    /// Where to be told over server-sent events; relative like the other.
    pub sse_url: String,
    /// Where to be told over WebSocket (`identify` with `inbox_hints: true`); absolute.
    pub websocket_url: String,
    /// How often a holder of leases is to send a heartbeat at least, in seconds.
    pub heartbeat_interval_seconds: u64,
    /// How long a lease lasts for which the worker names nothing, in seconds.
    pub lease_default_seconds: u64,
    /// For how many days the log keeps events; absent when it keeps them for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64)]
    pub retention_days: Option<u64>,
}
