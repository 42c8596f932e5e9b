//! Request ids: the thread from an answer to the log.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use domain::IdGenerator;

/// The header that carries it, in requests and in answers.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A client's own id may be this long.
const MAX_LENGTH: usize = 128;

/// The identity of one request, as it is echoed and logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// As the value of [`REQUEST_ID`].
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

/// Makes ids for requests that bring none: unique in the process by a counter, between processes by a prefix. Far cheaper than a UUID each,
/// which the hot path would feel.
#[derive(Debug)]
pub(crate) struct RequestIds {
    prefix: String,
    next: AtomicU64,
}

impl RequestIds {
    /// A fresh series.
    pub(crate) fn new(ids: &dyn IdGenerator) -> Self {
        let uuid = ids.uuid().simple().to_string();
        // The last digits of a UUIDv7 are its random part.
        let prefix = uuid.get(uuid.len().saturating_sub(12)..).unwrap_or_default().to_owned();
        Self { prefix, next: AtomicU64::new(1) }
    }

    /// The client's own id when it is a sane one, else a new one.
    pub(crate) fn of(&self, headers: &HeaderMap) -> RequestId {
        match headers.get(REQUEST_ID) {
            Some(own) if is_sane(own.as_bytes()) => RequestId(own.clone()),
            _ => self.fresh(),
        }
    }

    fn fresh(&self) -> RequestId {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let text = format!("{}-{number:x}", self.prefix);
        RequestId(HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("-")))
    }
}

/// Short, and of characters that neither a log nor a header can misread.
fn is_sane(id: &[u8]) -> bool {
    (1..=MAX_LENGTH).contains(&id.len())
        && id.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'/' | b'='))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};
    use domain::SystemIds;

    use super::{REQUEST_ID, RequestIds};

    fn of(ids: &RequestIds, own: &str) -> String {
        let headers = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::try_from(own).unwrap())]);
        ids.of(&headers).as_str().to_owned()
    }

    #[test]
    fn a_sane_id_of_the_client_is_kept() {
        let ids = RequestIds::new(&SystemIds);
        assert_eq!(of(&ids, "job-17/step_2.a:b="), "job-17/step_2.a:b=");
    }

    #[test]
    fn an_id_that_could_forge_a_log_line_is_replaced() {
        let ids = RequestIds::new(&SystemIds);
        for own in ["", "a b", "a\"b", "a{b}", &"x".repeat(129)] {
            assert_ne!(of(&ids, own), own);
        }
    }

    #[test]
    fn ids_do_not_repeat() {
        let ids = RequestIds::new(&SystemIds);
        let none = HeaderMap::new();
        assert_ne!(ids.of(&none), ids.of(&none));
        assert_ne!(ids.of(&none).as_str().split('-').next(), RequestIds::new(&SystemIds).of(&none).as_str().split('-').next());
    }
}
