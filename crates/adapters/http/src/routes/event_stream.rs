//! What every stream of server-sent events shares (HTML standard, "Server-sent events"): its answer, and where a client stands that comes back.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use domain::{Seq, SyncEpoch};

use crate::refusal::Refusal;

const MEDIA_TYPE: &str = "text/event-stream";
const LAST_EVENT_ID: &str = "last-event-id";

/// Said first: the headers leave at once, and a client that loses the stream comes back after three seconds.
pub(super) const OPENING: &[u8] = b"retry: 3000\n\n";

/// A comment that keeps the connection alive.
pub(super) const HEARTBEAT: &[u8] = b": heartbeat\n\n";

/// 200 with a stream.
pub(super) fn answer(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Nothing can follow a stream on its connection.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    // Proxies of the nginx family hold answers back otherwise.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Where a client stands that has been here before: the `id` of the last event that arrived.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<(SyncEpoch, Seq)>, Refusal> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let parsed = value.to_str().ok().and_then(|id| {
        let (epoch, seq) = id.split_once(':')?;
        Some((epoch.parse().ok()?, seq.parse().ok().and_then(Seq::new)?))
    });
    parsed.map(Some).ok_or_else(|| Refusal::invalid("#header/last-event-id", "the id of an event of this stream: <sync_epoch>:<seq>"))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::last_event_id;

    fn of(value: &str) -> Option<(u64, String)> {
        let headers = HeaderMap::from_iter([("last-event-id".parse().unwrap(), HeaderValue::from_str(value).unwrap())]);
        let (epoch, seq) = last_event_id(&headers).ok()??;
        Some((seq.get(), epoch.to_string()))
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
