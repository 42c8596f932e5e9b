//! `getInbox`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use protocol::{InboxState, ProblemCode, schema};

use super::{asked, wire};
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// An inbox as a whole.
///
/// What waits, whether it is paused, whether its agent wants to be rung. An agent sees its own; operators (`inbox.read`) see any.
#[utoipa::path(
    get, path = "/v1/inbox", operation_id = "getInbox", tag = "inbox",
    params(
        ("recipient_id" = Option<schema::PrincipalId>, Query, description = "Operators: whose inbox. The caller's own by default."),
        ("tenant_id" = Option<schema::TenantId>, Query, description = "The token's own tenant."),
    ),
    responses((status = 200, description = "The inbox.", body = InboxState)),
    extensions(("x-action" = json!(Action::InboxPoll.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn get_inbox(State(state): State<ApiState>, Authenticated(caller): Authenticated, uri: Uri) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let recipient = asked::recipient(&mut query, &caller)?;
    query.end()?;
    let shown = state.inbox.state(&caller, recipient.as_ref()).await?;
    reply::ok(&wire::state(shown, &caller))
}
