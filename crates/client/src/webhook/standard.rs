//! Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,…` over `id.timestamp.body`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Timestamp;

use super::{WebhookHeaders, WebhookKey, WebhookRejection};

pub(super) const ID: &str = "webhook-id";
const TIMESTAMP: &str = "webhook-timestamp";
pub(super) const SIGNATURE: &str = "webhook-signature";

/// Signatures that are looked at; one for each key that is valid at the time. More are an attempt to keep a receiver busy.
const SIGNATURES_MAX: usize = 16;
/// The longest id.
const ID_MAX: usize = 256;

/// What was signed by one of the keys.
pub(super) struct Signed<'a> {
    pub(super) id: &'a str,
    pub(super) at: Timestamp,
}

/// Finds a signature that one of the keys has made. Whether it is too old is for the caller to judge.
pub(super) fn verify<'a>(headers: &WebhookHeaders<'a>, body: &[u8], keys: &[WebhookKey]) -> Result<Signed<'a>, WebhookRejection> {
    let (id, timestamp) = (headers.one(ID)?, headers.one(TIMESTAMP)?);
    // A dot is where the id ends in what is signed: with one inside, two requests would have the same signature.
    if id.is_empty() || id.len() > ID_MAX || id.contains('.') || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(WebhookRejection::Malformed(ID));
    }
    let at = seconds(timestamp).ok_or(WebhookRejection::Malformed(TIMESTAMP))?;
    let message = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    let mut signatures = headers.one(SIGNATURE)?.split(' ').filter(|entry| !entry.is_empty());
    let is_signed = signatures.by_ref().take(SIGNATURES_MAX).any(|entry| {
        // Other versions are other schemes.
        let signature = entry.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok());
        signature
            .is_some_and(|signature| keys.iter().any(|key| matches!(key, WebhookKey::Secret(_)) && key.has_signed(&message, &signature)))
    });
    if is_signed { Ok(Signed { id, at }) } else { Err(WebhookRejection::Signature) }
}

/// Whole seconds since the Unix epoch, digits only.
pub(super) fn seconds(text: &str) -> Option<Timestamp> {
    let is_plain = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds: i64 = text.parse().ok().filter(|_| is_plain)?;
    seconds.checked_mul(1_000_000).map(Timestamp::from_micros)
}
