//! Keys of hooks: what signs, and what a receiver proves itself with.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{InvalidId, Timestamp};
use ring::signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, ED25519, UnparsedPublicKey};
use thiserror::Error;

use crate::Sealed;

/// The name of a key (`secret_id` of seed 000), as `MATM-Key-Id` and `keyid` carry it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(String);

impl KeyId {
    /// What a valid one looks like.
    pub const EXPECTATION: &'static str = "1 to 64 letters, digits, '_', '.' and '-'";

    /// Checks `text`.
    ///
    /// # Errors
    /// [`InvalidId`] when it does not have the form of [`Self::EXPECTATION`].
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if (1..=64).contains(&text.len()) && text.bytes().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId { expectation: Self::EXPECTATION })
        }
    }

    /// A name for a key that nobody named.
    pub(crate) fn of(uuid: uuid::Uuid) -> Self {
        Self(format!("key_{}", uuid.simple()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The members are no public key that can be used here.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not a public key: Ed25519 (OKP, x) or P-256 (EC, x and y), in base64url without padding")]
pub struct InvalidKey;

/// The public key of a receiver, with which it answers challenges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKey {
    /// Ed25519: 32 bytes.
    Ed25519(Vec<u8>),
    /// ECDSA over P-256: an uncompressed point of 65 bytes.
    P256(Vec<u8>),
}

impl PublicKey {
    /// Reads the members of a JSON Web Key (RFC 7517): `OKP`/`Ed25519` with `x`, `EC`/`P-256` with `x` and `y`.
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn from_jwk(kty: &str, crv: &str, x: &str, y: Option<&str>) -> Result<Self, InvalidKey> {
        let part = |text: &str| URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == 32).ok_or(InvalidKey);
        match (kty, crv, y) {
            ("OKP", "Ed25519", None) => Ok(Self::Ed25519(part(x)?)),
            ("EC", "P-256", Some(y)) => Ok(Self::P256([vec![4], part(x)?, part(y)?].concat())),
            _ => Err(InvalidKey),
        }
    }

    /// The algorithm and the bytes, as stores keep them.
    pub fn parts(&self) -> (&'static str, &[u8]) {
        match self {
            Self::Ed25519(bytes) => ("ed25519", bytes),
            Self::P256(bytes) => ("p256", bytes),
        }
    }

    /// The key of these parts.
    ///
    /// # Errors
    /// [`InvalidKey`].
    pub fn from_parts(algorithm: &str, bytes: &[u8]) -> Result<Self, InvalidKey> {
        match (algorithm, bytes) {
            ("ed25519", bytes) if bytes.len() == 32 => Ok(Self::Ed25519(bytes.to_vec())),
            ("p256", [4, rest @ ..]) if rest.len() == 64 => Ok(Self::P256(bytes.to_vec())),
            _ => Err(InvalidKey),
        }
    }

    /// Whether `signature` over `message` is this key's. ECDSA signatures may be of fixed length or DER.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Ed25519(bytes) => UnparsedPublicKey::new(&ED25519, bytes).verify(message, signature).is_ok(),
            Self::P256(bytes) if signature.len() == 64 => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, bytes).verify(message, signature).is_ok()
            }
            Self::P256(bytes) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, bytes).verify(message, signature).is_ok(),
        }
    }
}

/// What a key consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyMaterial {
    /// A minted secret, sealed.
    Secret(Sealed),
    /// A receiver's public key.
    Public(PublicKey),
}

/// A row of `hook_keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookKey {
    /// Its name, unique within the hook.
    pub id: KeyId,
    /// What it consists of.
    pub material: KeyMaterial,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when it never signs nor proves anything; absent for the current one.
    pub expires_at: Option<Timestamp>,
}

impl HookKey {
    /// Whether it counts at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}
