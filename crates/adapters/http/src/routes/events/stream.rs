//! `streamEvents`.

use authz::Action;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use domain::SyncEpoch;
use futures_util::stream::unfold;
use gateway::StreamStart;
use protocol::{ProblemCode, schema};

use super::sse::Live;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::event_stream::{answer, last_event_id};
use crate::services::ApiState;

/// Follow the log as server-sent events.
///
/// For people and apps: the same events as `listEvents`, then those to come. The `data` of an unnamed event is the envelope; its `id` is
/// `<sync_epoch>:<seq>`, so a client that reconnects with `Last-Event-ID` misses nothing. `event: cursor` says how far was checked where there was
/// nothing to see; `event: resync_required` that the position could not be served and the stream goes on after `head_seq`; `event: end` why the
/// stream ends. Comments keep the connection alive. A client that does not read is dropped after `gateway.write_timeout`.
#[utoipa::path(
    get, path = "/v1/events/stream", operation_id = "streamEvents", tag = "events",
    params(
        ("after" = Option<schema::Seq>, Query, description = "The last position that the reader has. From the head by default."),
        ("sync_epoch" = Option<schema::SyncEpoch>, Query, description = "The epoch that `after` belongs to."),
        ("last-event-id" = Option<String>, Header, description = "The `id` of the last event that arrived: `<sync_epoch>:<seq>`. Wins over `after`."),
    ),
    responses((
        status = 200, description = "The stream.", body = String, content_type = "text/event-stream",
        example = json!("id: 6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10:184392\ndata: {\"seq\":184392,\"id\":\"0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70\",…}\n\n")
    )),
    extensions(
        ("x-action" = json!(Action::EventsRead.name())),
        ("x-problem-codes" = json!([ProblemCode::RateLimited]))
    )
)]
pub(crate) async fn stream_events(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let asked = StreamStart { after: query.seq("after")?, epoch: query.parsed::<SyncEpoch>("sync_epoch", "a UUID")? };
    query.end()?;
    let resumed = last_event_id(&headers)?.map(|(epoch, seq)| StreamStart { after: Some(seq), epoch: Some(epoch) });
    let start = resumed.unwrap_or(asked);
    let stream = state.events.stream(&caller, start).await?;
    let body = unfold(Live::begin(stream), Live::next);
    Ok(answer(Body::from_stream(body)))
}
