//! Answering the challenge by which a receiver proves that it holds its key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use serde::{Deserialize, Serialize};

use super::{InvalidWebhookKey, WebhookSecret};

/// The body of a challenge. Answer it only in a request that was verified.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct WebhookChallenge {
    #[serde(rename = "type")]
    kind: Kind,
    delivery_id: String,
    nonce: String,
    challenge: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Kind {
    #[serde(rename = "callback.challenge")]
    Challenge,
}

impl WebhookChallenge {
    /// Reads a body; `None` when it is no challenge but a ring.
    pub fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// The body of the answer, JSON, to be sent with status 200.
    pub fn answer(&self, prover: &WebhookProver) -> String {
        #[derive(Serialize)]
        struct Answer {
            response: String,
        }
        let message = format!("{}.{}.{}", self.delivery_id, self.nonce, self.challenge);
        let response = STANDARD.encode(prover.prove(message.as_bytes()));
        // A string is always JSON.
        serde_json::to_string(&Answer { response }).unwrap_or_default()
    }
}

/// What a receiver proves itself with: the secret that the registration has answered, or the private half of the key that was registered.
#[derive(Debug)]
pub struct WebhookProver(Key);

enum Key {
    Hmac(hmac::Key),
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl From<&WebhookSecret> for WebhookProver {
    fn from(secret: &WebhookSecret) -> Self {
        Self(Key::Hmac(secret.key.clone()))
    }
}

impl WebhookProver {
    /// An Ed25519 key in PKCS#8 (DER).
    ///
    /// # Errors
    /// [`InvalidWebhookKey::Private`].
    pub fn ed25519(pkcs8: &[u8]) -> Result<Self, InvalidWebhookKey> {
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).map(Key::Ed25519).map(Self).map_err(|_| InvalidWebhookKey::Private)
    }

    /// A P-256 key in PKCS#8 (DER).
    ///
    /// # Errors
    /// [`InvalidWebhookKey::Private`].
    pub fn p256(pkcs8: &[u8]) -> Result<Self, InvalidWebhookKey> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &SystemRandom::new());
        pair.map(Key::P256).map(Self).map_err(|_| InvalidWebhookKey::Private)
    }

    fn prove(&self, message: &[u8]) -> Vec<u8> {
        match &self.0 {
            Key::Hmac(key) => hmac::sign(key, message).as_ref().to_vec(),
            Key::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            // Without randomness there is no signature; an empty one proves nothing, and is refused.
            Key::P256(pair) => pair.sign(&SystemRandom::new(), message).map(|signature| signature.as_ref().to_vec()).unwrap_or_default(),
        }
    }
}
