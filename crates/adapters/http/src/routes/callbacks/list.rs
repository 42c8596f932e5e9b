//! `listCallbacks`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::PrincipalId;
use hooks::{Hook, HookId, HookKind};
use protocol::{CallbackRegistration, Page, ProblemCode, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::hooks::wire::page_of;
use crate::routes::reply;
use crate::services::ApiState;

/// The callbacks of an agent, with their health.
///
/// An agent sees its own; operators (`hooks.manage`) name an `agent`. URLs are shown without their query.
#[utoipa::path(
    get, path = "/v1/callback-registrations", operation_id = "listCallbacks", tag = "hooks",
    params(
        ("agent" = Option<schema::PrincipalId>, Query, description = "Operators: whose callbacks. The caller's own by default."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "In the order of their registration.", body = Page<CallbackRegistration>)),
    extensions(("x-action" = json!(Action::CallbackRegister.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn list_callbacks(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let agent = query.parsed::<PrincipalId>("agent", PrincipalId::EXPECTATION)?;
    let (limit, after) = page_of::<HookId>(&mut query, &state)?;
    query.end()?;
    let found = state.hooks.list(&caller, agent.as_ref(), HookKind::Callback, after, limit + 1).await?;
    reply::ok(&reply::page(found, limit, |hook: &Hook| hook.id.to_string(), wire::registration))
}
