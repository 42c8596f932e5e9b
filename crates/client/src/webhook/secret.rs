//! The keys that a receiver holds.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::signature::{ED25519, UnparsedPublicKey};
use thiserror::Error;

/// The text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidWebhookKey {
    /// Not a secret of Standard Webhooks. Leaving out padding and other base64 alphabets are refused, too: half a secret is none.
    #[error("a webhook secret is `whsec_` and the base64 of 24 to 64 bytes")]
    Secret,
    /// Not an Ed25519 key.
    #[error("the server's key is 32 bytes long")]
    Public,
    /// Not a private key in PKCS#8.
    #[error("not a private key (PKCS#8) of this kind")]
    Private,
}

/// A secret that the server has shown once: `whsec_…`.
#[derive(Clone)]
pub struct WebhookSecret {
    pub(super) key: hmac::Key,
    pub(super) id: Option<String>,
}

impl WebhookSecret {
    /// Reads `whsec_…`.
    ///
    /// # Errors
    /// [`InvalidWebhookKey::Secret`].
    pub fn parse(text: &str) -> Result<Self, InvalidWebhookKey> {
        let encoded = text.strip_prefix("whsec_").ok_or(InvalidWebhookKey::Secret)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| InvalidWebhookKey::Secret)?;
        if !(24..=64).contains(&bytes.len()) {
            return Err(InvalidWebhookKey::Secret);
        }
        Ok(Self { key: hmac::Key::new(hmac::HMAC_SHA256, &bytes), id: None })
    }

    /// Only for HTTP Message Signatures that name this key (`keyid`, the `key_id` of the registration). Without a name it is tried for all.
    #[must_use]
    pub fn named(self, key_id: &str) -> Self {
        Self { id: Some(key_id.to_owned()), ..self }
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSecret").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A public key of the server, from `/.well-known/doorstep-keys`: for callbacks whose receiver has registered a key instead of sharing a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPublicKey {
    pub(super) id: String,
    pub(super) bytes: [u8; 32],
}

impl ServerPublicKey {
    /// The Ed25519 key of these 32 bytes, under the name that signatures carry as `keyid`.
    ///
    /// # Errors
    /// [`InvalidWebhookKey::Public`].
    pub fn new(key_id: &str, bytes: &[u8]) -> Result<Self, InvalidWebhookKey> {
        let bytes = bytes.try_into().map_err(|_| InvalidWebhookKey::Public)?;
        Ok(Self { id: key_id.to_owned(), bytes })
    }
}

/// A key that signatures are verified with.
#[derive(Clone, Debug)]
pub enum WebhookKey {
    /// A shared secret.
    Secret(WebhookSecret),
    /// The server's public key.
    Server(ServerPublicKey),
}

impl From<WebhookSecret> for WebhookKey {
    fn from(secret: WebhookSecret) -> Self {
        Self::Secret(secret)
    }
}

impl From<ServerPublicKey> for WebhookKey {
    fn from(key: ServerPublicKey) -> Self {
        Self::Server(key)
    }
}

impl WebhookKey {
    /// Whether this key may have made a signature that names `key_id` and `algorithm`.
    pub(super) fn fits(&self, key_id: &str, algorithm: &str) -> bool {
        match self {
            Self::Secret(secret) => algorithm == "hmac-sha256" && secret.id.as_deref().is_none_or(|id| id == key_id),
            Self::Server(key) => algorithm == "ed25519" && key.id == key_id,
        }
    }

    /// Whether the signature over `message` is this key's. Takes the same time wherever they differ.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Secret(secret) => hmac::verify(&secret.key, message, signature).is_ok(),
            Self::Server(key) => UnparsedPublicKey::new(&ED25519, key.bytes).verify(message, signature).is_ok(),
        }
    }
}
