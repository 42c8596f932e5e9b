//! `listConsumers`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::{ConsumerName, PrincipalId};
use protocol::{ConsumerItem, Page, ProblemCode, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// The consumers of an agent, and how far behind they are.
///
/// For owners and operators.
#[utoipa::path(
    get, path = "/v1/agents/{agent}/consumers", operation_id = "listConsumers", tag = "consumers",
    params(
        ("agent" = schema::PrincipalId, Path, description = "The agent."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "By name.", body = Page<ConsumerItem>)),
    extensions(("x-action" = json!(Action::ConsumersList.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn list_consumers(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    let agent: PrincipalId = names.name("agent")?;
    let mut query = Query::of(&uri);
    let limit = query.limit(state.settings.default_page_size, state.settings.max_page_size)?;
    let after = query.parsed::<ConsumerName>("cursor", "the next_cursor of a page")?;
    query.end()?;
    let consumers = state.consumers.list(&caller, &agent, after.as_ref(), limit + 1).await?;
    reply::ok(&reply::page(
        consumers,
        limit,
        |consumer| consumer.consumer.to_string(),
        |consumer| {
            let updated_at = consumer.updated_at;
            ConsumerItem { agent: agent.clone(), state: wire::state(consumer), updated_at }
        },
    ))
}
