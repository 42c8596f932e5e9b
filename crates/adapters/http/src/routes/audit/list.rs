//! `listAudit`.

use authz::{Action, AuditDecision, AuditEntry, AuditFilter};
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::PrincipalId;
use protocol::{Open, Page, Vocabulary, admin, schema};
use serde_json::value::RawValue;

use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::listing;
use crate::services::ApiState;

/// What was administered, and what was refused.
///
/// Newest first. Administrative changes carry what was before and after; denials are added up by actor, action, target and minute.
#[utoipa::path(
    get, path = "/v1/audit", operation_id = "listAudit", tag = "audit",
    params(
        ("actor" = Option<schema::PrincipalId>, Query, description = "Only of this principal."),
        ("action" = Option<String>, Query, description = "Only this action, such as `events.publish`."),
        ("decision" = Option<admin::AuditDecision>, Query, description = "Only with this decision."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "Newest first.", body = Page<admin::AuditItem>)),
    extensions(("x-action" = json!(Action::AuditRead.name())))
)]
pub(crate) async fn list_audit(State(state): State<ApiState>, Authenticated(caller): Authenticated, uri: Uri) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let filter = AuditFilter {
        actor: query.parsed::<PrincipalId>("actor", PrincipalId::EXPECTATION)?,
        action: query.text("action")?.map(std::borrow::Cow::into_owned),
        decision: query.text("decision")?.map(|word| decision_of(&word)).transpose()?,
    };
    let keyset = listing::keyset::<u64>(&mut query, &state.settings)?;
    query.end()?;
    listing::answer(state.admin.audit(&caller, &filter, &keyset).await?, entry)
}

fn decision_of(word: &str) -> Result<AuditDecision, Refusal> {
    match admin::AuditDecision::from_word(word) {
        Some(admin::AuditDecision::Allow) => Ok(AuditDecision::Allow),
        Some(admin::AuditDecision::Deny) => Ok(AuditDecision::Deny),
        None => Err(Refusal::invalid("#query/decision", admin::AuditDecision::EXPECTATION)),
    }
}

fn entry(entry: AuditEntry) -> admin::AuditItem {
    let decision = match entry.decision {
        AuditDecision::Allow => admin::AuditDecision::Allow,
        AuditDecision::Deny => admin::AuditDecision::Deny,
    };
    admin::AuditItem {
        audit_id: entry.id.to_string(),
        at: entry.at,
        actor: entry.actor,
        action: entry.action,
        target: entry.target,
        decision: Open::Known(decision),
        count: entry.count,
        before: entry.before.and_then(json_text),
        after: entry.after.and_then(json_text),
    }
}

/// The store holds JSON text; it is handed on as it is.
fn json_text(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}
