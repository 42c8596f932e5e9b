//! `updatePrincipal`.

use authz::{Action, PrincipalPatch};
use axum::extract::{Request, State};
use axum::response::Response;
use domain::PrincipalId;
use protocol::{ProblemCode, admin, schema};

use super::wire;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query, parse_json};
use crate::routes::reply;
use crate::services::ApiState;

/// Change a principal.
///
/// What is absent stays. Disabling closes the principal's connections with 4012; acknowledgements made before are stored. The tenant's last
/// enabled owner stays one.
#[utoipa::path(
    patch, path = "/v1/principals/{principal}", operation_id = "updatePrincipal", tag = "principals",
    params(("principal" = schema::PrincipalId, Path, description = "The principal.")),
    request_body(content = admin::PrincipalChange, description = "What to change."),
    responses((status = 200, description = "The principal as it is now.", body = admin::Principal)),
    extensions(
        ("x-action" = json!(Action::PrincipalsManage.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::StateConflict].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn update_principal(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    Query::none(request.uri())?;
    let id: PrincipalId = names.name("principal")?;
    let (parts, body) = request.into_parts();
    let (change, _) = parse_json::<admin::PrincipalChange>(&parts.headers, body, &state.settings).await?;
    let patch = PrincipalPatch {
        display_name: change.display_name.map(|name| name.to_string()),
        role: change.role.map(wire::role_of),
        enabled: change.enabled,
    };
    reply::ok(&wire::principal(state.admin.update_principal(&caller, &id, patch).await?))
}
