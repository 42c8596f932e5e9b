//! `unquarantineItem`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use protocol::{InboxItem, ItemTarget, ProblemCode};

use super::{asked, wire};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::reply;
use crate::services::ApiState;

/// Release an item that was put aside.
///
/// It is claimable again. Audited.
#[utoipa::path(
    post, path = "/v1/inbox/unquarantine", operation_id = "unquarantineItem", tag = "inbox",
    request_body(content = ItemTarget, description = "Which item."),
    responses((status = 200, description = "The item as it stands now.", body = InboxItem)),
    extensions(
        ("x-action" = json!(Action::InboxManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::StateConflict].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn unquarantine_item(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: ItemTarget = asked::body(request, &state).await?;
    asked::own_tenant(&caller, asked.tenant_id.as_ref())?;
    let item = state.inbox.unquarantine(&caller, &asked.recipient_id, asked.event_id).await?;
    reply::ok(&wire::item(item, &caller, &asked.recipient_id))
}
