//! Bodies of the consumer operations.

use domain::{ConsumerName, PrincipalId, Seq, SessionId, SyncEpoch, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::strict::present;
use crate::vocabulary::vocabulary;
use crate::{Open, schema};

vocabulary! {
    /// Over which transport a consumer is held.
    pub enum HolderKind: "a kind of holder: gateway or rest" {
        /// By a gateway session.
        Gateway = "gateway",
        /// By polls over REST.
        Rest = "rest",
    }
}

/// Who holds a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConsumerHolder {
    /// Over which transport.
    #[schema(value_type = HolderKind)]
    pub kind: Open<HolderKind>,
    /// The session, when it is the gateway's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::SessionId)]
    pub gateway_session_id: Option<SessionId>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub taken_at: Option<Timestamp>,
}

/// Where a consumer stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "consumer": "default", "acked_seq": 184_390, "head_seq": 184_392, "lag": 2, "in_flight": 2, "holder": {"kind": "rest"}
}))]
pub struct ConsumerState {
    /// The consumer.
    #[schema(value_type = schema::ConsumerName)]
    pub consumer: ConsumerName,
    /// Everything up to here is acknowledged.
    #[schema(value_type = schema::Seq)]
    pub acked_seq: Seq,
    /// The log's committed head.
    #[schema(value_type = schema::Seq)]
    pub head_seq: Seq,
    /// Positions from `acked_seq` to `head_seq`, also those that the agent may not see.
    pub lag: u64,
    /// Events dispatched and not acknowledged. Absent while a gateway session holds the consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64)]
    pub in_flight: Option<u64>,
    /// Who holds it. Absent when nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ConsumerHolder)]
    pub holder: Option<ConsumerHolder>,
}

/// A consumer in an operator's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "agent": "agent_alpha", "consumer": "default", "acked_seq": 184_390, "head_seq": 184_392, "lag": 2,
    "holder": {"kind": "gateway", "gateway_session_id": "0197f0ab-5a01-7c55-9d2e-6b0f4a7d2c11", "taken_at": "2026-07-12T16:20:00.000Z"},
    "updated_at": "2026-07-12T16:22:04.000Z"
}))]
pub struct ConsumerItem {
    /// The agent.
    #[schema(value_type = schema::PrincipalId)]
    pub agent: PrincipalId,
    /// Where its consumer stands.
    #[serde(flatten)]
    pub state: ConsumerState,
    /// When the stored position was last written.
    #[schema(value_type = schema::Timestamp)]
    pub updated_at: Timestamp,
}

/// A cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an acknowledgement")]
#[schema(example = json!({"seq": 184_392, "sync_epoch": "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10"}))]
pub struct ConsumerAck {
    /// Everything up to here is done with, also what was never dispatched.
    #[schema(value_type = schema::Seq)]
    pub seq: Seq,
    /// The epoch that `seq` belongs to; another one is refused with `resync_required`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::SyncEpoch)]
    pub sync_epoch: Option<SyncEpoch>,
}
