//! `pollAgentEvents`.

use std::time::Duration;

use agents::Poll;
use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::SyncEpoch;
use protocol::{EventPage, ProblemCode, schema};

use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Take events as a consumer.
///
/// Delivers from the acknowledged position on, at most `agent.max_inflight_events` unacknowledged events altogether. The first poll creates the
/// consumer at the head. A poll takes the consumer over from a gateway session, which closes with 4015.
///
/// Acknowledge `next_cursor` after working, also when `events` is empty. Events that are not acknowledged within `agent.ack_timeout` come again
/// with `redelivered: true`; within it a poll never repeats them. Until a page is known to have arrived (it was acknowledged, or the next poll
/// said so by `after`), the next one is not dispatched and the answer is empty with `unproven: true`.
///
/// With `wait_seconds` the answer waits until there is an event for the consumer. When the position cannot be served, the cursor moves to the
/// head and the answer is `resync_required`; the next poll goes on from there.
#[utoipa::path(
    get, path = "/v1/agents/me/consumers/{consumer}/events", operation_id = "pollAgentEvents", tag = "consumers",
    params(
        ("consumer" = schema::ConsumerName, Path, description = "The consumer."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "At most this many events; capped to `agent.max_inflight_events`, which is also the default."),
        ("wait_seconds" = Option<u64>, Query, minimum = 0, description = "How long to wait for an event; capped to `agent.poll_wait_max`. At once by default."),
        ("after" = Option<schema::Seq>, Query, description = "The `next_cursor` of the last page that arrived, which proves its arrival; a lower value asks for what came after it again."),
        ("sync_epoch" = Option<schema::SyncEpoch>, Query, description = "The epoch that the client is in; another one is refused with `resync_required`."),
    ),
    responses((status = 200, description = "What there is, possibly nothing.", body = EventPage)),
    extensions(
        ("x-action" = json!(Action::AgentEventsConsume.name())),
        ("x-problem-codes" = json!([
            ProblemCode::LimitReached, ProblemCode::ResyncRequired, ProblemCode::StateConflict, ProblemCode::RateLimited, ProblemCode::StorageFull, ProblemCode::InDoubt
        ])),
    )
)]
pub(crate) async fn poll_agent_events(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let poll = Poll {
        name: names.name("consumer")?,
        limit: query.optional_limit()?,
        wait: query.wait()?,
        after: query.seq("after")?,
        epoch: query.parsed::<SyncEpoch>("sync_epoch", "a UUID")?,
    };
    query.end()?;
    let waits = poll.wait > Duration::ZERO;
    let page = state.consumers.poll(&caller, poll).await?;
    if waits {
        state.metrics.waited(!page.events.is_empty());
    }
    Ok(reply::event_page(&page))
}
