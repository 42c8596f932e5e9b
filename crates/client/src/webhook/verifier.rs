//! The verifier: keys, tolerated clocks, and which scheme a request is signed by.

use std::sync::Arc;
use std::time::Duration;

use domain::{Clock, SystemClock, Timestamp};
use thiserror::Error;

use super::{WebhookHeaders, WebhookKey, WebhookMessage, WebhookRejection, message, standard};

/// How far clocks may be apart, and how long a request may be on its way, in either direction (Standard Webhooks).
const TOLERANCE: Duration = Duration::from_mins(5);

/// A verifier without keys would believe nobody, or everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a verifier needs a key")]
pub struct NoWebhookKeys;

/// Verifies requests with every key that is valid: during a rotation the current one and the next.
#[derive(Clone, Debug)]
pub struct WebhookVerifier {
    keys: Vec<WebhookKey>,
    tolerance: Duration,
    clock: Arc<dyn Clock>,
}

/// A request that one of the keys has signed, not too long ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedDelivery {
    /// The delivery: the same over all attempts to bring it.
    pub id: String,
    /// What no other attempt has; only HTTP Message Signatures sign one.
    pub nonce: Option<String>,
    /// When the attempt was signed.
    pub signed_at: Timestamp,
}

impl WebhookVerifier {
    /// A verifier with these keys, which tolerates five minutes.
    ///
    /// # Errors
    /// [`NoWebhookKeys`].
    pub fn new<K: Into<WebhookKey>>(keys: impl IntoIterator<Item = K>) -> Result<Self, NoWebhookKeys> {
        let keys: Vec<_> = keys.into_iter().map(Into::into).collect();
        if keys.is_empty() {
            return Err(NoWebhookKeys);
        }
        Ok(Self { keys, tolerance: TOLERANCE, clock: Arc::new(SystemClock::new()) })
    }

    /// Tolerates this much, both ways.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Duration) -> Self {
        Self { tolerance, ..self }
    }

    /// Takes the time from this clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Verifies a request that is signed by Standard Webhooks: notify hooks, and callbacks with `auth_mode: hmac-sha256`.
    ///
    /// # Errors
    /// [`WebhookRejection`].
    pub fn verify(&self, headers: &WebhookHeaders<'_>, body: &[u8]) -> Result<VerifiedDelivery, WebhookRejection> {
        let signed = standard::verify(headers, body, &self.keys)?;
        message::judge_digest_if_any(headers, body)?;
        self.judge_age(signed.at)?;
        Ok(VerifiedDelivery { id: signed.id.to_owned(), nonce: None, signed_at: signed.at })
    }

    /// Verifies a request that is signed by HTTP Message Signatures (RFC 9421): callbacks with `auth_mode: http-message-signatures`.
    ///
    /// # Errors
    /// [`WebhookRejection`].
    pub fn verify_message(&self, request: &WebhookMessage<'_>) -> Result<VerifiedDelivery, WebhookRejection> {
        let signed = message::verify(request, &self.keys)?;
        self.judge_age(signed.created)?;
        if self.clock.now() >= signed.expires {
            return Err(WebhookRejection::TooOld);
        }
        Ok(VerifiedDelivery { id: signed.id.to_owned(), nonce: Some(signed.nonce.to_owned()), signed_at: signed.created })
    }

    /// Verifies a request by whichever of the two it is signed.
    ///
    /// # Errors
    /// [`WebhookRejection`].
    pub fn verify_either(&self, request: &WebhookMessage<'_>) -> Result<VerifiedDelivery, WebhookRejection> {
        if message::is_signed(request.headers) { self.verify_message(request) } else { self.verify(request.headers, request.body) }
    }

    fn judge_age(&self, at: Timestamp) -> Result<(), WebhookRejection> {
        let now = self.clock.now();
        match () {
            () if now.since(at) > self.tolerance => Err(WebhookRejection::TooOld),
            () if at.since(now) > self.tolerance => Err(WebhookRejection::TooNew),
            () => Ok(()),
        }
    }
}
