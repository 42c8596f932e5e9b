//! Signing, pure: Standard Webhooks, the `MATM-*` headers, and one fixed profile of RFC 9421. What is signed is what is sent, byte by byte.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::Timestamp;
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::signature::Ed25519KeyPair;

use crate::{HookUrl, KeyId, Profile, Secret, WebhookId};

/// Header names and values.
pub(crate) type Headers = Vec<(&'static str, String)>;

/// A key that may sign now.
#[derive(Debug)]
pub(crate) enum SigningKey {
    /// A minted secret.
    Hmac(KeyId, Secret),
    /// The server's own pair.
    Ed25519(KeyId, Ed25519KeyPair),
}

impl SigningKey {
    const fn id(&self) -> &KeyId {
        match self {
            Self::Hmac(id, _) | Self::Ed25519(id, _) => id,
        }
    }

    const fn algorithm(&self) -> &'static str {
        match self {
            Self::Hmac(..) => "hmac-sha256",
            Self::Ed25519(..) => "ed25519",
        }
    }

    /// The signature in base64.
    fn sign(&self, message: &[u8]) -> String {
        match self {
            Self::Hmac(_, secret) => hmac_base64(secret.bytes(), message),
            Self::Ed25519(_, pair) => STANDARD.encode(pair.sign(message)),
        }
    }
}

/// A request to be signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsigned<'a> {
    /// How.
    pub(crate) profile: Profile,
    /// The ring.
    pub(crate) id: &'a WebhookId,
    /// Where it goes.
    pub(crate) url: &'a HookUrl,
    /// What it carries.
    pub(crate) body: &'a [u8],
    /// When; fresh per attempt.
    pub(crate) now: Timestamp,
    /// Fresh per attempt.
    pub(crate) nonce: &'a str,
    /// How long the signature counts.
    pub(crate) lifetime: Duration,
}

/// The headers that sign a request with every one of `keys`, the newest first; `None` when there is no key.
pub(crate) fn sign(request: Unsigned<'_>, keys: &[SigningKey]) -> Option<Headers> {
    let newest = keys.first()?;
    Some(match request.profile {
        Profile::StandardWebhooks => standard_webhooks(request, keys),
        Profile::CallbackHmac => [standard_webhooks(request, keys), matm(request, newest)].concat(),
        Profile::MessageHmac | Profile::MessageEd25519 => [matm(request, newest), message_signatures(request, keys)].concat(),
    })
}

/// Standard Webhooks: `v1` over `id.timestamp.body`, one signature per key.
fn standard_webhooks(request: Unsigned<'_>, keys: &[SigningKey]) -> Headers {
    let timestamp = seconds(request.now).to_string();
    let signed = [request.id.as_str().as_bytes(), b".", timestamp.as_bytes(), b".", request.body].concat();
    let signatures: Vec<String> = keys.iter().map(|key| format!("v1,{}", key.sign(&signed))).collect();
    vec![("webhook-id", request.id.to_string()), ("webhook-timestamp", timestamp), ("webhook-signature", signatures.join(" "))]
}

/// The headers of seed 000 ("Recommended callback headers").
fn matm(request: Unsigned<'_>, key: &SigningKey) -> Headers {
    vec![
        ("matm-delivery-id", request.id.to_string()),
        ("matm-timestamp", seconds(request.now).to_string()),
        ("matm-nonce", request.nonce.to_owned()),
        ("matm-key-id", key.id().to_string()),
        ("content-digest", content_digest(request.body)),
    ]
}

/// RFC 9421 with fixed components; one label per key, so that whoever holds only one of them finds it by `keyid`.
fn message_signatures(request: Unsigned<'_>, keys: &[SigningKey]) -> Headers {
    let (authority, digest) = (request.url.authority(), content_digest(request.body));
    let components = [
        ("@method", "POST"),
        ("@authority", authority.as_str()),
        ("@path", request.url.path()),
        ("content-digest", digest.as_str()),
        ("matm-delivery-id", request.id.as_str()),
    ];
    let (mut inputs, mut signatures) = (Vec::new(), Vec::new());
    for (number, key) in (1..).zip(keys) {
        let created = seconds(request.now);
        let expires = created.saturating_add(i64::try_from(request.lifetime.as_secs()).unwrap_or(i64::MAX));
        let names: Vec<String> = components.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        // Any order is right; receivers exist that rebuild the parameters in this one instead of taking them as they came.
        let parameters = format!(
            "({});created={created};expires={expires};nonce=\"{}\";alg=\"{}\";keyid=\"{}\"",
            names.join(" "),
            request.nonce,
            key.algorithm(),
            key.id()
        );
        let signature = key.sign(signature_base(&components, &parameters).as_bytes());
        inputs.push(format!("sig{number}={parameters}"));
        signatures.push(format!("sig{number}=:{signature}:"));
    }
    vec![("signature-input", inputs.join(", ")), ("signature", signatures.join(", "))]
}

/// What is signed (RFC 9421, section 2.5).
fn signature_base(components: &[(&str, &str)], parameters: &str) -> String {
    let lines = components.iter().map(|(name, value)| format!("\"{name}\": {value}"));
    let last = format!("\"@signature-params\": {parameters}");
    lines.chain([last]).collect::<Vec<_>>().join("\n")
}

/// `Content-Digest` (RFC 9530).
fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(digest(&SHA256, body)))
}

/// HMAC-SHA256 in base64.
pub(crate) fn hmac_base64(key: &[u8], message: &[u8]) -> String {
    STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message))
}

/// Whether `tag` is the HMAC-SHA256 of `message`; in constant time.
pub(crate) fn is_hmac(key: &[u8], message: &[u8], tag: &[u8]) -> bool {
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), message, tag).is_ok()
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

#[cfg(test)]
mod tests;
