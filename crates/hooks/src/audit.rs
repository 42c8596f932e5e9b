//! Whatever is done to hooks is written down, in the same transaction: they make the server call out.

use authz::{Action, AuditDecision, AuditEntry, Target};
use domain::PrincipalId;
use serde_json::{Value, json};

use crate::{Hook, HookError, HookTx};

/// Notes what `actor` did to a hook.
pub(crate) async fn audit(
    tx: &mut dyn HookTx,
    hook: &Hook,
    actor: &PrincipalId,
    action: Action,
    before: Option<&Value>,
    after: Option<&Value>,
) -> Result<(), HookError> {
    let entry = AuditEntry {
        id: 0,
        at: tx.now(),
        actor: Some(actor.clone()),
        action: action.name().to_owned(),
        target: Target::Principal(&hook.agent).to_string(),
        decision: AuditDecision::Allow,
        count: 1,
        before: before.map(Value::to_string),
        after: after.map(Value::to_string),
    };
    Ok(tx.audit(&hook.tenant, &entry).await?)
}

/// A hook as the audit log shows it.
pub(crate) fn value(hook: &Hook) -> Value {
    json!({
        "hook": hook.id,
        "kind": hook.kind.as_str(),
        "profile": hook.profile.as_str(),
        "host": hook.url.host(),
        "queues": hook.queues,
        "ignore_presence": hook.ignore_presence,
        "state": hook.state.as_str(),
    })
}
