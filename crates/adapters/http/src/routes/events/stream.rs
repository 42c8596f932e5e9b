//! `streamEvents`.

use authz::Action;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;
use domain::{Seq, SyncEpoch};
use futures_util::stream::unfold;
use gateway::StreamStart;
use protocol::{ProblemCode, schema};

use super::sse::{self, Live};
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::services::ApiState;

const LAST_EVENT_ID: &str = "last-event-id";

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
    let start = last_event_id(&headers)?.unwrap_or(asked);
    let stream = state.events.stream(&caller, start).await?;
    let body = unfold(Live::begin(stream), Live::next);
    Ok(answer(Body::from_stream(body)))
}

fn answer(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(sse::MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Nothing can follow a stream on its connection.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    // Proxies of the nginx family hold answers back otherwise.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Where a client stands that has been here before.
fn last_event_id(headers: &HeaderMap) -> Result<Option<StreamStart>, Refusal> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let parsed = value.to_str().ok().and_then(|id| {
        let (epoch, seq) = id.split_once(':')?;
        let (epoch, seq) = (epoch.parse().ok()?, seq.parse().ok().and_then(Seq::new)?);
        Some(StreamStart { after: Some(seq), epoch: Some(epoch) })
    });
    parsed.map(Some).ok_or_else(|| Refusal::invalid("#header/last-event-id", "the id of an event of this stream: <sync_epoch>:<seq>"))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::last_event_id;

    fn of(value: &str) -> Option<(u64, String)> {
        let headers = HeaderMap::from_iter([("last-event-id".parse().unwrap(), HeaderValue::from_str(value).unwrap())]);
        let start = last_event_id(&headers).ok()??;
        Some((start.after.unwrap().get(), start.epoch.unwrap().to_string()))
    }

    #[test]
    fn a_client_resumes_by_epoch_and_seq() {
        let epoch = "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10";
        assert_eq!(of(&format!("{epoch}:184392")), Some((184_392, epoch.to_owned())));
        for wrong in ["", "184392", ":1", "x:1", &format!("{epoch}:"), &format!("{epoch}:-1"), &format!("{epoch}:9007199254740992")] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert!(last_event_id(&HeaderMap::new()).unwrap().is_none());
    }
}
