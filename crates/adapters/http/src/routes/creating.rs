//! Creating requests: their body, their `Idempotency-Key`, their answer.

use std::sync::Arc;

use authz::{AnswerOf, IdempotencyKey, Idempotent, Made, Outcome};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use ring::digest::{Context, SHA256};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::reply;
use crate::Settings;
use crate::refusal::Refusal;
use crate::request::{Query, parse_json};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request that creates something.
#[derive(Debug)]
pub(crate) struct Creating<B> {
    /// What to create.
    pub(crate) body: B,
    key: Option<IdempotencyKey>,
    /// SHA-256 of method, path and body: another request under the same key is a conflict.
    request_hash: [u8; 32],
}

impl<B: DeserializeOwned> Creating<B> {
    /// Reads it.
    pub(crate) async fn read(request: Request, settings: &Settings) -> Result<Self, Refusal> {
        Query::none(request.uri())?;
        let (parts, body) = request.into_parts();
        let key = key_of(&parts.headers)?;
        let (body, bytes) = parse_json(&parts.headers, body, settings).await?;
        let request_hash = hash(&[parts.method.as_str().as_bytes(), parts.uri.path().as_bytes(), &bytes]);
        Ok(Self { body, key, request_hash })
    }
}

impl<B> Creating<B> {
    /// What makes it repeatable. `stored` is what a repeat is answered: without one-time secrets.
    pub(crate) fn idempotent<T: 'static, W: Serialize + 'static>(&self, stored: fn(&T) -> W) -> Option<Idempotent<T>> {
        let answer: AnswerOf<T> = Arc::new(move |made| {
            let body = serde_json::to_string(&stored(made.get())).unwrap_or_default();
            (status_of(made).as_u16(), body)
        });
        self.key.clone().map(|key| Idempotent { key, request_hash: self.request_hash, answer })
    }
}

/// 201 for what was created, 200 for what was there, and for a repeat what was answered before.
pub(crate) fn answer<T, W: Serialize>(outcome: Outcome<T>, shown: impl FnOnce(T) -> W) -> Result<Response, Refusal> {
    match outcome {
        Outcome::Done(made) => {
            let status = status_of(&made);
            let (Made::New(thing) | Made::Present(thing)) = made;
            reply::json(status, &shown(thing))
        }
        Outcome::Replayed(stored) => {
            let status = StatusCode::from_u16(stored.status).map_err(Refusal::internal)?;
            Ok(reply::encoded(status, "application/json", stored.body))
        }
    }
}

fn status_of<T>(made: &Made<T>) -> StatusCode {
    match made {
        Made::New(_) => StatusCode::CREATED,
        Made::Present(_) => StatusCode::OK,
    }
}

/// The request's `Idempotency-Key`.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Refusal> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let parsed = value.to_str().map_err(|_| IdempotencyKey::EXPECTATION).and_then(IdempotencyKey::parse);
    parsed.map(Some).map_err(|expectation| Refusal::invalid("#header/idempotency-key", expectation))
}

/// Each part with its length in front, so that no two requests join to the same bytes.
pub(crate) fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn requests_that_differ_in_any_part_have_different_hashes() {
        let hashes =
            [hash(&[b"POST", b"/v1/spaces", b"{}"]), hash(&[b"POST", b"/v1/spaces{", b"}"]), hash(&[b"POST", b"/v1/grants", b"{}"])];
        assert!(hashes[0] != hashes[1] && hashes[0] != hashes[2] && hashes[1] != hashes[2]);
    }
}
