//! Request bodies: bounded in size and time, of a media type that the operation reads.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body::Body as _;
use protocol::{CloudEventsMode, ProblemCode};
use serde::de::DeserializeOwned;

use crate::Settings;
use crate::refusal::Refusal;

use axum::body::Body;

const READS_JSON: &str = "this operation reads application/json";

/// Of a body that is too large, this much more is read and dropped, so that the peer comes to read the answer.
const DRAINED_BYTES: usize = 32 * 1024 * 1024;
/// And for this long at most.
const DRAINED_FOR: Duration = Duration::from_secs(2);

/// At most this much is set aside for a body because of its announced length alone.
const RESERVED_BYTES: usize = 256 * 1024;

/// The media types that operations read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaType {
    /// `application/json`.
    Json,
    /// `application/cloudevents+json` or `application/cloudevents-batch+json`.
    CloudEvents(CloudEventsMode),
}

/// What the request says its body is.
///
/// # Errors
/// `unsupported_media_type` for anything that no operation reads, also for a compressed body.
pub(crate) fn media_type(headers: &HeaderMap) -> Result<MediaType, Refusal> {
    let unsupported = |detail: &'static str| Refusal::new(ProblemCode::UnsupportedMediaType, detail);
    if headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        return Err(unsupported("compressed bodies are not read").at("#header/content-encoding"));
    }
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Err(unsupported("say what the body is: Content-Type: application/json").at("#header/content-type"));
    };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(MediaType::Json);
    }
    let mode = CloudEventsMode::of_media_type(essence);
    mode.map(MediaType::CloudEvents).ok_or_else(|| unsupported(READS_JSON).at("#header/content-type"))
}

/// Reads a body of at most `limit` bytes within `patience`.
///
/// # Errors
/// `payload_too_large`, `request_timeout`, or `validation_failed` when the peer breaks off or breaks HTTP.
pub(crate) async fn read_body(body: Body, limit: usize, patience: Duration) -> Result<Bytes, Refusal> {
    // A body that has arrived already is read without a timer: the hot path.
    match tokio::time::timeout(patience, collect(body, limit)).await {
        Ok(collected) => collected,
        Err(_) => Err(Refusal::new(ProblemCode::RequestTimeout, "the body did not arrive in time (http.request_timeout)")),
    }
}

async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Refusal> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(too_large(body, limit).await);
    }
    let mut first = Bytes::new();
    let mut joined = Vec::new();
    while let Some(data) = next_data(&mut body).await? {
        if data.len() + first.len() + joined.len() > limit {
            return Err(too_large(body, limit).await);
        }
        if joined.is_empty() && first.is_empty() {
            first = data;
        } else {
            if joined.is_empty() {
                // Only now: what a lone piece needs is there already, and who announces much has sent little yet.
                joined.reserve_exact(announced.min(RESERVED_BYTES).max(first.len() + data.len()));
            }
            joined.extend_from_slice(&std::mem::take(&mut first));
            joined.extend_from_slice(&data);
        }
    }
    Ok(if joined.is_empty() { first } else { joined.into() })
}

async fn next_data(body: &mut Body) -> Result<Option<Bytes>, Refusal> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(Refusal::invalid("", "the body broke off or is not valid HTTP")),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reads on for a while: a connection that is closed with unread bytes is reset, and the peer would lose the answer.
async fn too_large(mut body: Body, limit: usize) -> Refusal {
    let drain = async {
        let mut drained = 0;
        while let Ok(Some(data)) = next_data(&mut body).await {
            drained += data.len();
            if drained > DRAINED_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAINED_FOR, drain).await;
    Refusal::new(ProblemCode::PayloadTooLarge, format!("the body is larger than {limit} bytes"))
}

/// Reads a JSON object strictly.
///
/// # Errors
/// As [`media_type`], [`read_body`] and `protocol::parse_body`.
pub(crate) async fn parse_json<T: DeserializeOwned>(headers: &HeaderMap, body: Body, settings: &Settings) -> Result<(T, Bytes), Refusal> {
    parse_json_of(headers, body, settings.max_body_bytes, settings.request_timeout).await
}

/// The same of a body of at most `limit` bytes that arrives within `patience`.
///
/// # Errors
/// As [`parse_json`].
pub(crate) async fn parse_json_of<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
) -> Result<(T, Bytes), Refusal> {
    if media_type(headers)? != MediaType::Json {
        return Err(Refusal::new(ProblemCode::UnsupportedMediaType, READS_JSON).at("#header/content-type"));
    }
    let bytes = read_body(body, limit, patience).await?;
    Ok((protocol::parse_body(&bytes)?, bytes))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::{HeaderMap, HeaderValue, header};
    use bytes::Bytes;
    use futures_util::stream;
    use protocol::{CloudEventsMode, ProblemCode};

    use super::{Body, MediaType, media_type, read_body};

    const PATIENCE: Duration = Duration::from_secs(5);

    fn chunks(chunks: &'static [&'static str]) -> Body {
        Body::from_stream(stream::iter(chunks.iter().map(|chunk| Ok::<_, std::io::Error>(Bytes::from_static(chunk.as_bytes())))))
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_joined_in_order() {
        assert_eq!(read_body(chunks(&["ab", "", "cd", "e"]), 5, PATIENCE).await.unwrap(), "abcde");
        assert_eq!(read_body(Body::empty(), 5, PATIENCE).await.unwrap(), "");
    }

    #[tokio::test]
    async fn one_byte_above_the_limit_is_too_large() {
        for body in [chunks(&["abc", "def"]), Body::from("abcdef")] {
            assert_eq!(read_body(body, 5, PATIENCE).await.unwrap_err().code(), ProblemCode::PayloadTooLarge);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_times_out() {
        let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(read_body(never, 5, PATIENCE).await.unwrap_err().code(), ProblemCode::RequestTimeout);
    }

    #[test]
    fn only_json_and_its_named_kinds_are_read() {
        let of = |value: &str| media_type(&HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_str(value).unwrap())]));
        assert_eq!(of("application/json").unwrap(), MediaType::Json);
        assert_eq!(of("Application/JSON; charset=utf-8").unwrap(), MediaType::Json);
        assert_eq!(of("application/cloudevents+json").unwrap(), MediaType::CloudEvents(CloudEventsMode::Structured));
        assert_eq!(of("application/cloudevents-batch+json; charset=utf-8").unwrap(), MediaType::CloudEvents(CloudEventsMode::Batch));
        for other in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
            assert_eq!(of(other).unwrap_err().code(), ProblemCode::UnsupportedMediaType, "{other}");
        }
        assert!(media_type(&HeaderMap::new()).is_err());
    }

    #[test]
    fn a_compressed_body_is_refused() {
        let headers = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::CONTENT_ENCODING, HeaderValue::from_static("gzip")),
        ]);
        assert_eq!(media_type(&headers).unwrap_err().pointer(), Some("#header/content-encoding"));
    }
}
