//! `streamSignals`.

use authz::Action;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures_util::stream::unfold;
use protocol::{ProblemCode, schema};

use super::asked;
use super::signals::Live;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::event_stream::{answer, last_event_id};
use crate::services::ApiState;

/// Be told when work arrives, as server-sent events.
///
/// `event: inbox.updated` says that the calling agent's inbox has something; what it is, a poll or a claim says. A signal that is lost costs
/// latency and nothing else: it is repeated while items stay unclaimed. Its `id` is `<sync_epoch>:<head_seq>`; who reconnects with `Last-Event-ID`
/// is rung at once if the inbox has moved since. Comments keep the connection alive. A client that does not read is dropped after
/// `gateway.write_timeout`; the stream ends when the caller may not be told any more.
#[utoipa::path(
    get, path = "/v1/streams/sse", operation_id = "streamSignals", tag = "inbox",
    params(
        ("session_id" = schema::AgentSessionId, Query, description = "The session that is told (`subscribeSession`)."),
        ("last-event-id" = Option<String>, Header, description = "The `id` of the last signal that arrived: `<sync_epoch>:<head_seq>`."),
    ),
    responses((
        status = 200, description = "The stream.", body = String, content_type = "text/event-stream",
        example = json!("id: 6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10:184392\nevent: inbox.updated\ndata: {\"signal_type\":\"inbox.updated\",…}\n\n")
    )),
    extensions(
        ("x-action" = json!(Action::StreamSubscribe.name())),
        ("x-problem-codes" = json!([ProblemCode::NotFound, ProblemCode::LimitReached]))
    )
)]
pub(crate) async fn stream_signals(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let session = asked::session(&mut query)?;
    query.end()?;
    let session = session.ok_or_else(|| Refusal::invalid("#query/session_id", "name the session that is told (subscribeSession)"))?;
    let stream = state.inbox.signals_since(&caller, Some(session), last_event_id(&headers)?).await?;
    let live = Live::begin(stream, state.inbox.settings().sse_heartbeat);
    Ok(answer(Body::from_stream(unfold(live, Live::next))))
}
