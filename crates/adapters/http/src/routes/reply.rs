//! Answers that are JSON.

use agents::FeedPage;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use protocol::{Page, write_event_page};
use serde::Serialize;

use crate::refusal::Refusal;

/// JSON that is encoded already.
pub(crate) fn encoded(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Response, Refusal> {
    let text = serde_json::to_vec(body).map_err(Refusal::internal)?;
    Ok(encoded(status, "application/json", text))
}

/// 200 with JSON.
pub(crate) fn ok(body: &impl Serialize) -> Result<Response, Refusal> {
    json(StatusCode::OK, body)
}

/// 204.
pub(crate) fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// A page of a listing. The use case was asked for one entry more than `limit`; whether it came says whether a page follows.
pub(crate) fn page<T, W>(mut entries: Vec<T>, limit: usize, key: impl Fn(&T) -> String, show: impl Fn(T) -> W) -> Page<W> {
    let next_cursor = if entries.len() > limit {
        entries.truncate(limit);
        entries.last().map(key)
    } else {
        None
    };
    Page { items: entries.into_iter().map(show).collect(), next_cursor }
}

/// What a page of events costs beside its events.
const PAGE_FRAME: usize = 192;

/// 200 with a page of events: their texts are only joined.
pub(crate) fn event_page(page: &FeedPage) -> Response {
    let events: usize = page.events.iter().map(|event| event.len() + 1).sum();
    let mut out = Vec::with_capacity(events + PAGE_FRAME);
    write_event_page(&mut out, &page.events, page.next_cursor, page.head, page.epoch, page.unproven);
    encoded(StatusCode::OK, "application/json", out)
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn a_cursor_is_handed_out_exactly_when_more_follows() {
        let of = |count: u32| page((1..=count).collect(), 2, u32::to_string, |n| n);
        assert_eq!((of(1).items, of(1).next_cursor), (vec![1], None));
        assert_eq!((of(2).items, of(2).next_cursor), (vec![1, 2], None));
        assert_eq!((of(3).items, of(3).next_cursor), (vec![1, 2], Some("2".to_owned())));
    }
}
