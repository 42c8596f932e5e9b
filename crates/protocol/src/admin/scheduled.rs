//! Scheduled events.

use domain::{ChannelRef, DeduplicationKey, EventId, EventType, PrincipalId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::vocabulary::vocabulary;
use crate::{Open, schema};

vocabulary! {
    /// Where a scheduled event stands.
    pub enum ScheduledState: "a state of a scheduled event: waiting or failed" {
        /// Waiting for its time.
        Waiting = "waiting",
        /// It could not be appended when it was due.
        Failed = "failed",
    }
}

/// A scheduled event in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "type": "reminder.due", "channel": "support/general", "publisher": "sam",
    "created_at": "2026-07-12T16:22:03.123Z", "available_at": "2026-07-13T08:00:00.000Z", "state": "waiting"
}))]
pub struct ScheduledItem {
    /// The event's identity, which it keeps.
    #[schema(value_type = schema::EventId)]
    pub id: EventId,
    /// What will have happened.
    #[serde(rename = "type")]
    #[schema(value_type = schema::EventType)]
    pub event_type: EventType,
    /// Where it is to appear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::ChannelRef)]
    pub channel: Option<ChannelRef>,
    /// To whom it is addressed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::PrincipalId>)]
    pub audience: Vec<PrincipalId>,
    /// By what a repeat is recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::DeduplicationKey)]
    pub deduplication_key: Option<DeduplicationKey>,
    /// Who published it.
    #[schema(value_type = schema::PrincipalId)]
    pub publisher: PrincipalId,
    /// When it was accepted.
    #[schema(value_type = schema::Timestamp)]
    pub created_at: Timestamp,
    /// When it is due.
    #[schema(value_type = schema::Timestamp)]
    pub available_at: Timestamp,
    /// Where it stands.
    #[schema(value_type = ScheduledState)]
    pub state: Open<ScheduledState>,
    /// Why it failed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub failure: Option<String>,
}
