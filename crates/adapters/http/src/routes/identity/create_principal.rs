//! `createPrincipal`.

use authz::{Action, NewPrincipal, Role};
use axum::extract::{Request, State};
use axum::response::Response;
use protocol::{ProblemCode, admin};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::creating::{self, Creating};
use crate::services::ApiState;

/// Create a principal.
///
/// For owners and operators; operators create members only.
#[utoipa::path(
    post, path = "/v1/principals", operation_id = "createPrincipal", tag = "principals",
    params(("idempotency-key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours.")),
    request_body(content = admin::NewPrincipal, description = "Who."),
    responses((status = 201, description = "It is created.", body = admin::Principal)),
    extensions(
        ("x-action" = json!(Action::PrincipalsManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::AlreadyExists, ProblemCode::IdempotencyConflict].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn create_principal(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let creating = Creating::<admin::NewPrincipal>::read(request, &state.settings).await?;
    let idempotent = creating.idempotent(|principal: &authz::Principal| wire::principal(principal.clone()));
    let new = NewPrincipal {
        id: creating.body.id,
        kind: wire::kind_of(creating.body.kind),
        role: creating.body.role.map_or(Role::Member, wire::role_of),
        display_name: creating.body.display_name.map(|name| name.to_string()),
    };
    creating::answer(state.admin.create_principal(&caller, new, idempotent).await?, wire::principal)
}
