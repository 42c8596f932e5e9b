//! `createTenant`.

use authz::{Action, NewTenant};
use axum::extract::{Request, State};
use axum::response::Response;
use protocol::{ProblemCode, admin};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::creating::{self, Creating};
use crate::services::ApiState;

/// Create a tenant with its first owner.
///
/// The owner's token is shown this once; a repeat with the same `Idempotency-Key` says `secret_shown: true` instead.
#[utoipa::path(
    post, path = "/v1/tenants", operation_id = "createTenant", tag = "tenants",
    params(("idempotency-key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours.")),
    request_body(content = admin::NewTenant, description = "Its name, and its owner's."),
    responses((status = 201, description = "It is created.", body = admin::TenantCreated)),
    extensions(
        ("x-action" = json!(Action::TenantsManage.name())),
        ("x-problem-codes" = json!([
            [ProblemCode::AlreadyExists, ProblemCode::LimitReached, ProblemCode::IdempotencyConflict].as_slice(), &WRITING
        ].concat())),
    )
)]
pub(crate) async fn create_tenant(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let creating = Creating::<admin::NewTenant>::read(request, &state.settings).await?;
    let idempotent = creating.idempotent(wire::without_secret);
    let new = NewTenant { id: creating.body.id, owner: creating.body.owner };
    creating::answer(state.admin.create_tenant(&caller, new, idempotent).await?, wire::created)
}
