//! What operators do to inboxes is written down with what was before and what is after, in the same transaction.

use authz::{Action, AuditDecision, AuditEntry, Target};
use domain::PrincipalId;
use serde_json::{Value, json};

use crate::change::Change;
use crate::{InboxError, Item, Presence, RecipientRow};

impl Change<'_> {
    /// Notes what `actor` did to this inbox.
    pub(crate) async fn audit(&mut self, actor: &PrincipalId, action: Action, before: &Value, after: &Value) -> Result<(), InboxError> {
        let entry = AuditEntry {
            id: 0,
            at: self.now,
            actor: Some(actor.clone()),
            action: action.name().to_owned(),
            target: Target::Principal(&self.row.recipient.agent).to_string(),
            decision: AuditDecision::Allow,
            count: 1,
            before: Some(before.to_string()),
            after: Some(after.to_string()),
        };
        Ok(self.tx.audit(&self.row.recipient.tenant, &entry).await?)
    }
}

/// An item as the audit log shows it.
pub(crate) fn item_value(item: &Item) -> Value {
    json!({
        "event_id": item.facts.event_id,
        "ack_state": item.state.as_str(),
        "counted_attempts": item.counted_attempts,
    })
}

/// An inbox as the audit log shows it.
pub(crate) fn row_value(row: &RecipientRow) -> Value {
    let (presence, until) = match row.presence {
        Presence::In => ("in", None),
        Presence::Out { until } => ("out", until),
    };
    json!({
        "paused": row.paused,
        "paused_queues": row.paused_queues,
        "presence": presence,
        "presence_until": until,
        "max_in_flight": row.policy.max_in_flight,
        "concurrency": row.policy.concurrency,
    })
}
