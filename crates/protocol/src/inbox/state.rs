//! An inbox as a whole: its head, its presence, its policy.

use std::num::NonZeroU32;

use domain::{PrincipalId, QueueName, Seq, SyncEpoch, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::inbox::{ClaimBacklog, Seconds};
use crate::strict::present;
use crate::vocabulary::vocabulary;
use crate::{Open, PresenceState, RecipientKind, schema};

/// Whose inbox it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "agent_alpha"}))]
pub struct RecipientRef {
    /// The tenant.
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: TenantId,
    /// The kind of principal.
    #[schema(value_type = RecipientKind)]
    pub recipient_kind: Open<RecipientKind>,
    /// The principal.
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: PrincipalId,
}

/// Where an inbox stands: the cheapest question there is, also answered by the header `ETag`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "recipient": {"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "agent_alpha"}, "head_seq": 184_392,
    "sync_epoch": "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10"
}))]
pub struct InboxHead {
    /// Whose it is.
    pub recipient: RecipientRef,
    /// The highest `ring_seq` that it ever had; zero for one that never had an item.
    #[schema(value_type = schema::Seq)]
    pub head_seq: Seq,
    /// The epoch that it belongs to.
    #[schema(value_type = schema::SyncEpoch)]
    pub sync_epoch: SyncEpoch,
}

/// Whether an agent is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"state": "out", "until_utc": "2026-07-12T18:00:00.000Z"}))]
pub struct InboxPresence {
    /// Whether it wants to be rung.
    #[schema(value_type = PresenceState)]
    pub state: Open<PresenceState>,
    /// When an agent that is out is back by itself. Absent when it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub until_utc: Option<Timestamp>,
}

vocabulary! {
    /// How many of an agent's sessions may claim.
    pub enum ClaimConcurrency: "many_sessions or single_active_session" {
        /// All of them; claims serialise.
        ManySessions = "many_sessions",
        /// Only the one that subscribed last with `wants_claims`.
        SingleActiveSession = "single_active_session",
    }
}

/// What an operator decides about an agent's inbox. Setting it replaces all of it: what is absent has its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a policy object")]
#[schema(example = json!({"max_in_flight": 4, "concurrency": "many_sessions"}))]
pub struct InboxPolicy {
    /// Most items that the agent may hold at once. Unlimited when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, minimum = 1)]
    pub max_in_flight: Option<NonZeroU32>,
    /// How many of its sessions may claim. `many_sessions` when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ClaimConcurrency)]
    pub concurrency: Option<ClaimConcurrency>,
}

/// An inbox as its agent and operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "recipient": {"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "agent_alpha"}, "head_seq": 184_392,
    "sync_epoch": "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10", "paused": false, "paused_queues": ["mail"], "presence": {"state": "in"},
    "policy": {"concurrency": "many_sessions"},
    "backlog": {"available": 3, "claimed": 1, "resting": 1, "next_due_at_utc": "2026-07-12T16:23:00.000Z"}
}))]
pub struct InboxState {
    /// Whose it is.
    pub recipient: RecipientRef,
    /// The highest `ring_seq` that it ever had.
    #[schema(value_type = schema::Seq)]
    pub head_seq: Seq,
    /// The epoch that it belongs to.
    #[schema(value_type = schema::SyncEpoch)]
    pub sync_epoch: SyncEpoch,
    /// Whether it is paused as a whole.
    pub paused: bool,
    /// Its paused queues. Absent when there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<crate::QueueName>)]
    pub paused_queues: Vec<QueueName>,
    /// Whether the agent wants to be rung.
    pub presence: InboxPresence,
    /// What an operator decided.
    pub policy: InboxPolicy,
    /// What waits.
    pub backlog: ClaimBacklog,
}

/// A presence to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a presence object")]
#[schema(example = json!({"state": "out", "for_seconds": 3_600}))]
pub struct PresenceRequest {
    /// In or out.
    pub state: PresenceState,
    /// With `out`: after how many seconds the agent is back by itself. Until it says so when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Seconds)]
    pub for_seconds: Option<Seconds>,
}
