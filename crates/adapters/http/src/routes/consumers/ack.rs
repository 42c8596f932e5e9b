//! `ackAgentEvents`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::ConsumerName;
use protocol::{ConsumerAck, ConsumerState, ProblemCode, schema};

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query, parse_json};
use crate::routes::reply;
use crate::services::ApiState;

/// Acknowledge events as a consumer.
///
/// Cumulative and monotone: everything up to `seq` is done with, also what was never dispatched; at or below the acknowledged position nothing
/// changes. Stored before the answer, whoever holds the consumer; takes nothing over. Repeating it is harmless, so it takes no `Idempotency-Key`.
#[utoipa::path(
    post, path = "/v1/agents/me/consumers/{consumer}/ack", operation_id = "ackAgentEvents", tag = "consumers",
    params(("consumer" = schema::ConsumerName, Path, description = "The consumer.")),
    request_body(content = ConsumerAck, description = "How far."),
    responses((status = 200, description = "Where the consumer stands now.", body = ConsumerState)),
    extensions(
        ("x-action" = json!(Action::AgentEventsConsume.name())),
        ("x-problem-codes" = json!([
            ProblemCode::NotFound, ProblemCode::ResyncRequired, ProblemCode::StorageFull, ProblemCode::InDoubt
        ])),
    )
)]
pub(crate) async fn ack_agent_events(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    request: Request,
) -> Result<Response, Refusal> {
    Query::none(request.uri())?;
    let consumer: ConsumerName = names.name("consumer")?;
    let (parts, body) = request.into_parts();
    let (ack, _) = parse_json::<ConsumerAck>(&parts.headers, body, &state.settings).await?;
    reply::ok(&wire::state(state.consumers.ack(&caller, &consumer, ack.seq, ack.sync_epoch).await?))
}
