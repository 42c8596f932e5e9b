//! What operators do with inboxes.

use domain::{EventId, EventType, PrincipalId, QueueName, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::strict::{object, present};
use crate::{AckState, schema};

/// Which items. Everything that is given must hold; `{}` is every item that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a filter object")]
#[schema(example = json!({"states": ["dead_letter"], "queue": "inbox", "created_after": "2026-07-12T00:00:00Z"}))]
pub struct InboxItemFilter {
    /// In one of these states.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<AckState>)]
    pub states: Option<Vec<AckState>>,
    /// In this queue.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = crate::QueueName)]
    pub queue: Option<QueueName>,
    /// Of this type.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::EventType)]
    pub event_type: Option<EventType>,
    /// Made before this instant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub created_before: Option<Timestamp>,
    /// Made at or after this instant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub created_after: Option<Timestamp>,
    /// Exactly these; at least one.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<schema::EventId>, min_items = 1)]
    pub event_ids: Option<Vec<EventId>>,
}

/// A redrive or a discard of many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with recipient_id and filter")]
#[schema(example = json!({"recipient_id": "agent_alpha", "filter": {"states": ["dead_letter"]}, "dry_run": true}))]
pub struct BulkRequest {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// Whose inbox.
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: PrincipalId,
    /// Which items.
    #[serde(deserialize_with = "object")]
    pub filter: InboxItemFilter,
    /// Only count.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub dry_run: Option<bool>,
}

/// What a redrive or a discard did, or would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"matched": 12, "changed": 12, "more_available": false, "dry_run": false}))]
pub struct BulkResponse {
    /// Items that matched.
    pub matched: u64,
    /// Items that were changed; zero in a dry run.
    pub changed: u64,
    /// Whether the cap (`inbox.bulk_max`) left some for another call.
    pub more_available: bool,
    /// Whether it only counted.
    pub dry_run: bool,
}

/// One item of one inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with event_id and recipient_id")]
#[schema(example = json!({"event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "recipient_id": "agent_alpha"}))]
pub struct ItemTarget {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// The item.
    #[schema(value_type = schema::EventId)]
    pub event_id: EventId,
    /// Whose it is.
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: PrincipalId,
}

/// An inbox or one of its queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with recipient_id")]
#[schema(example = json!({"recipient_id": "agent_alpha", "queue": "mail"}))]
pub struct PauseRequest {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// Whose inbox.
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: PrincipalId,
    /// Only this queue. The inbox as a whole when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = crate::QueueName)]
    pub queue: Option<QueueName>,
}
