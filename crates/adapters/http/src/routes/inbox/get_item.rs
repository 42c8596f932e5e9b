//! `getInboxItem`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::EventId;
use protocol::{InboxItem, ProblemCode, schema};

use super::{asked, wire};
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// One item, whatever its state, with its attempts.
///
/// Nothing is changed. An agent sees its own; operators (`inbox.read`) see any.
#[utoipa::path(
    get, path = "/v1/inbox/items/{event}", operation_id = "getInboxItem", tag = "inbox",
    params(
        ("event" = schema::EventId, Path, description = "The event that made the item."),
        ("recipient_id" = Option<schema::PrincipalId>, Query, description = "Operators: whose inbox. The caller's own by default."),
        ("tenant_id" = Option<schema::TenantId>, Query, description = "The token's own tenant."),
    ),
    responses((status = 200, description = "The item.", body = InboxItem)),
    extensions(("x-action" = json!(Action::InboxPoll.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn get_inbox_item(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    let event: EventId = names.name("event")?;
    let mut query = Query::of(&uri);
    let recipient = asked::recipient(&mut query, &caller)?;
    query.end()?;
    let item = state.inbox.item(&caller, recipient.as_ref(), event).await?;
    reply::ok(&wire::item(item, &caller, recipient.as_ref().unwrap_or(&caller.principal)))
}
