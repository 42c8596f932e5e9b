//! `getConsumerState`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::ConsumerName;
use protocol::{ConsumerState, ProblemCode, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Where a consumer stands.
///
/// Reads the stored position and takes nothing over. A consumer that never connected is `not_found`: only connecting or polling creates it.
#[utoipa::path(
    get, path = "/v1/agents/me/consumers/{consumer}", operation_id = "getConsumerState", tag = "consumers",
    params(("consumer" = schema::ConsumerName, Path, description = "The consumer.")),
    responses((status = 200, description = "Where it stands.", body = ConsumerState)),
    extensions(("x-action" = json!(Action::AgentEventsConsume.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn get_consumer_state(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let consumer: ConsumerName = names.name("consumer")?;
    reply::ok(&wire::state(state.consumers.state(&caller, &consumer).await?))
}
