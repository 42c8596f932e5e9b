//! `redriveItems`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use inbox::Bulk;
use protocol::{BulkRequest, BulkResponse, ProblemCode};

use super::{asked, wire};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::reply;
use crate::services::ApiState;

/// Give dead letters new attempts.
///
/// Every dead letter that the filter is about becomes claimable again, with its history and fresh attempts. At most `inbox.bulk_max` at once; repeat
/// it while `more_available`. With `dry_run` it only counts. Audited.
#[utoipa::path(
    post, path = "/v1/inbox/redrive", operation_id = "redriveItems", tag = "inbox",
    request_body(content = BulkRequest, description = "Whose items, and which."),
    responses((status = 200, description = "How many.", body = BulkResponse)),
    extensions(
        ("x-action" = json!(Action::InboxManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn redrive_items(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: BulkRequest = asked::body(request, &state).await?;
    asked::own_tenant(&caller, asked.tenant_id.as_ref())?;
    let dry_run = asked.dry_run.unwrap_or_default();
    let bulk = Bulk { recipient: asked.recipient_id, filter: wire::filter(asked.filter)?, dry_run };
    let done = state.inbox.redrive(&caller, bulk).await?;
    reply::ok(&BulkResponse { matched: done.matched, changed: done.changed, more_available: done.more, dry_run })
}
