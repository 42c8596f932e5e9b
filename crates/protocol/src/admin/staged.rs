//! Events that applications handed in within their own transactions.

use domain::{ChannelRef, DeduplicationKey, EventId, EventType, PrincipalId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::vocabulary::vocabulary;
use crate::{Open, schema};

vocabulary! {
    /// Where a staged event stands.
    pub enum StagedState: "a state of a staged event: waiting or failed" {
        /// On its way into the log.
        Waiting = "waiting",
        /// It could not be appended.
        Failed = "failed",
    }
}

/// An event that an application handed in with `doorstep_publish`, and that is not in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "type": "order.placed", "channel": "shop/orders", "publisher": "shop",
    "staged_at": "2026-07-12T16:22:03.123Z", "state": "failed", "failure": "The channel does not exist any more."
}))]
pub struct StagedItem {
    /// The event's identity, which the application was told.
    #[schema(value_type = schema::EventId)]
    pub id: EventId,
    /// What happened.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::EventType)]
    pub event_type: Option<EventType>,
    /// Where it was to appear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::ChannelRef)]
    pub channel: Option<ChannelRef>,
    /// To whom it is addressed, those who are to work on it included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::PrincipalId>)]
    pub audience: Vec<PrincipalId>,
    /// By what a repeat is recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::DeduplicationKey)]
    pub deduplication_key: Option<DeduplicationKey>,
    /// The role of the database that handed it in.
    #[schema(value_type = schema::PrincipalId)]
    pub publisher: PrincipalId,
    /// When it was handed in; its transaction was committed later.
    #[schema(value_type = schema::Timestamp)]
    pub staged_at: Timestamp,
    /// Where it stands.
    #[schema(value_type = StagedState)]
    pub state: Open<StagedState>,
    /// Why it failed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub failure: Option<String>,
}
