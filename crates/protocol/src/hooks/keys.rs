//! The server's public signing keys.

use domain::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{HookKeyId, schema};

/// A public key, as a JSON Web Key (RFC 7517, RFC 8037).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "kid": "key_0197f0abb1577fab8d84c16ea0d18177", "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    "use": "sig", "signs_from": "2026-07-12T16:22:03.000Z"
}))]
pub struct PublicSigningKey {
    /// Its name, as `keyid` of a signature carries it.
    #[schema(value_type = HookKeyId)]
    pub kid: String,
    /// `OKP`.
    pub kty: String,
    /// `Ed25519`.
    pub crv: String,
    /// The key, in base64url without padding.
    pub x: String,
    /// `sig`.
    #[serde(rename = "use")]
    pub key_use: String,
    /// From when it signs, until the next one does. It is published before.
    #[schema(value_type = schema::Timestamp)]
    pub signs_from: Timestamp,
}

/// The keys with which the server signs callbacks of receivers that registered a public key: the present one, the next, and those that signed
/// until lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"keys": [{
    "kid": "key_0197f0abb1577fab8d84c16ea0d18177", "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    "use": "sig", "signs_from": "2026-07-12T16:22:03.000Z"
}]}))]
pub struct SigningKeys {
    /// The keys, by when they begin to sign.
    pub keys: Vec<PublicSigningKey>,
}
