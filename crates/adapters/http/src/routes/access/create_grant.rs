//! `createGrant`.

use authz::{Action, NewGrant};
use axum::extract::{Request, State};
use axum::response::Response;
use protocol::{ProblemCode, admin};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::creating::{self, Creating};
use crate::services::ApiState;

/// Grant a permission.
///
/// Needs `manage` on the resource. A grant that is there already is answered with 200.
#[utoipa::path(
    post, path = "/v1/grants", operation_id = "createGrant", tag = "access",
    params(("idempotency-key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours.")),
    request_body(content = admin::NewGrant, description = "Who may do what where."),
    responses(
        (status = 201, description = "It is granted.", body = admin::Grant),
        (status = 200, description = "It was granted before.", body = admin::Grant),
    ),
    extensions(
        ("x-action" = json!(Action::GrantsManage.name())),
        ("x-problem-codes" = json!([
            [ProblemCode::NotFound, ProblemCode::IdempotencyConflict].as_slice(), &WRITING
        ].concat())),
    )
)]
pub(crate) async fn create_grant(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let creating = Creating::<admin::NewGrant>::read(request, &state.settings).await?;
    let idempotent = creating.idempotent(|grant: &authz::Grant| wire::grant(grant.clone()));
    let new = NewGrant {
        principal: creating.body.principal,
        resource: wire::resource_of(creating.body.resource),
        permission: wire::permission_of(creating.body.permission),
    };
    creating::answer(state.admin.create_grant(&caller, new, idempotent).await?, wire::grant)
}
