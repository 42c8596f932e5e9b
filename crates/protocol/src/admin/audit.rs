//! The audit log.

use domain::{PrincipalId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::vocabulary::vocabulary;
use crate::{Open, schema};

vocabulary! {
    /// Whether a request was let through.
    pub enum AuditDecision: "a decision: allow or deny" {
        /// It was done.
        Allow = "allow",
        /// It was refused.
        Deny = "deny",
    }
}

/// An entry of the audit log. Denials are added up by actor, action, target and minute.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "audit_id": "1042", "at": "2026-07-12T16:22:00.000Z", "actor": "agent_alpha", "action": "events.publish", "target": "support/general",
    "decision": "deny", "count": 3
}))]
pub struct AuditItem {
    /// Its identity, growing with time.
    pub audit_id: String,
    /// When; the start of the minute for denials.
    #[schema(value_type = schema::Timestamp)]
    pub at: Timestamp,
    /// Who. Absent when nobody was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub actor: Option<PrincipalId>,
    /// The action's registered name.
    pub action: String,
    /// What it was aimed at.
    pub target: String,
    /// Whether it was let through.
    #[schema(value_type = AuditDecision)]
    pub decision: Open<AuditDecision>,
    /// How many alike this entry counts.
    pub count: u64,
    /// What was before an administrative change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub before: Option<Box<RawValue>>,
    /// What is after an administrative change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub after: Option<Box<RawValue>>,
}
