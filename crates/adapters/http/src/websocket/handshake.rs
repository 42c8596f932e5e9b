//! The opening handshake of a WebSocket (RFC 6455, section 4.2).

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use protocol::ProblemCode;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::refusal::Refusal;

const PROTOCOL_VERSION: HeaderValue = HeaderValue::from_static("13");

/// A request that asks for a WebSocket, checked.
#[derive(Debug)]
pub(crate) struct Handshake {
    accept: HeaderValue,
    upgrade: OnUpgrade,
}

impl Handshake {
    /// Reads it from the head of a request, and takes the upgrade out of the extensions. `None` when the request asks for no WebSocket that
    /// can be had here: the answer is [`upgrade_required`].
    pub(crate) fn of(parts: &mut Parts) -> Option<Self> {
        let accept = HeaderValue::try_from(derive_accept_key(key_of(parts)?.as_bytes())).ok()?;
        Some(Self { accept, upgrade: parts.extensions.remove::<OnUpgrade>()? })
    }

    /// The answer that switches protocols.
    pub(crate) fn answer(accept: HeaderValue) -> Response {
        let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
        *response.body_mut() = Body::empty();
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        response
    }

    /// The two halves: what to answer with, and what becomes the raw connection once the answer has been sent.
    pub(crate) fn split(self) -> (HeaderValue, OnUpgrade) {
        (self.accept, self.upgrade)
    }
}

fn key_of(parts: &Parts) -> Option<&HeaderValue> {
    let headers = &parts.headers;
    let asks = parts.version == Version::HTTP_11
        && has_word(headers, &header::CONNECTION, "upgrade")
        && has_word(headers, &header::UPGRADE, "websocket")
        && headers.get(header::SEC_WEBSOCKET_VERSION) == Some(&PROTOCOL_VERSION);
    // Sixteen bytes in base64.
    headers.get(header::SEC_WEBSOCKET_KEY).filter(|key| asks && key.len() == 24)
}

/// Whether a comma-separated header has this word, in any case.
fn has_word(headers: &HeaderMap, name: &header::HeaderName, word: &str) -> bool {
    let mut values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
}

/// `upgrade_required`, with the headers that say to what.
pub(crate) fn upgrade_required() -> Response {
    let detail = "this path is served over WebSocket: version 13 of RFC 6455 on HTTP/1.1";
    let mut response = Refusal::new(ProblemCode::UpgradeRequired, detail).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, PROTOCOL_VERSION);
    response
}

#[cfg(test)]
mod tests {
    use axum::http::{Request, Version};

    use super::key_of;

    const GOOD: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    fn is_taken(headers: &[(&str, &str)], version: Version) -> bool {
        let mut request = Request::builder().version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        key_of(&request.body(()).unwrap().into_parts().0).is_some()
    }

    #[test]
    fn a_complete_handshake_is_taken() {
        assert!(is_taken(&GOOD, Version::HTTP_11));
    }

    #[test]
    fn a_handshake_without_any_one_of_its_parts_is_not() {
        assert!(!is_taken(&GOOD, Version::HTTP_10));
        for (missing, _) in GOOD {
            let headers: Vec<_> = GOOD.into_iter().filter(|(name, _)| *name != missing).collect();
            assert!(!is_taken(&headers, Version::HTTP_11), "without {missing}");
        }
        for (name, value) in [("sec-websocket-version", "8"), ("sec-websocket-key", "short"), ("upgrade", "h2c")] {
            let headers = GOOD.map(|(own, good)| if own == name { (own, value) } else { (own, good) });
            assert!(!is_taken(&headers, Version::HTTP_11), "{name}: {value}");
        }
    }
}
