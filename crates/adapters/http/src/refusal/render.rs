//! How a refusal becomes an answer (RFC 9457), and what of it the log says.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use protocol::{PROBLEM_MEDIA_TYPE, Problem, ProblemCode};

use super::{Parts, Position, Refusal};
use crate::request::RequestId;

/// Where an inbox is read afresh.
const RESYNC_URL: &str = "/v1/inbox/items";

/// Replaces the body of `response` by the problem that `refusal` is. Headers that are there (such as `Allow`) stay.
pub(crate) fn render(mut response: Response, refusal: &Refusal, request_id: &RequestId) -> Response {
    let parts = &refusal.0;
    log(parts, request_id);
    let body = serde_json::to_vec(&problem(parts, request_id)).unwrap_or_default();
    *response.status_mut() = StatusCode::from_u16(parts.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    write_headers(response.headers_mut(), parts, body.len());
    *response.body_mut() = Body::from(body);
    response
}

fn problem(parts: &Parts, request_id: &RequestId) -> Problem {
    let mut problem = Problem::new(parts.code, parts.detail.clone(), request_id.as_str());
    if let Some(pointer) = &parts.pointer {
        problem = problem.with_pointer(pointer.clone());
    }
    if let Some(reason) = parts.reason {
        problem = problem.with_reason(reason);
    }
    match parts.position {
        Some(Position::Log { head, floor, epoch }) => problem.with_position(head, floor, epoch),
        Some(Position::Inbox { oldest, head, epoch }) => problem.with_reset(oldest, head, epoch, RESYNC_URL),
        None => problem,
    }
}

fn write_headers(headers: &mut HeaderMap, parts: &Parts, length: usize) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_MEDIA_TYPE));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if parts.code == ProblemCode::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(delay) = parts.retry_after {
        let seconds = delay.as_millis().div_ceil(1_000).max(1);
        headers.insert(header::RETRY_AFTER, HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX)));
    }
}

/// What the operator must know is logged here, once.
fn log(parts: &Parts, request_id: &RequestId) {
    let Some(cause) = &parts.cause else { return };
    let (code, request_id) = (parts.code.as_str(), request_id.as_str());
    if parts.code == ProblemCode::Internal {
        tracing::error!(http.request_id = request_id, error.cause = cause, problem.code = code, "request failed");
    } else {
        tracing::warn!(http.request_id = request_id, error.cause = cause, problem.code = code, "request refused");
    }
}
