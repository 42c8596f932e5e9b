//! How keys and receivers are named on the wire.

use serde_json::json;

use crate::schema::{described, impl_schema};
use crate::text::{is_token, wire_text};

wire_text!(
    /// The name of a key, as `MATM-Key-Id` and `keyid` carry it; no secret.
    HookKeyId, "1 to 64 letters, digits, '_', '.' and '-'", |text| is_token(text, 64),
    json!({"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$", "examples": ["cbksec_2026_07"]})
);

/// A URL that is to be called. Whether it may be is for the server to say (`url_refused`).
///
/// Its path and query may hold a credential, so debug output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct CallbackUrl(String);

impl CallbackUrl {
    /// Wraps the text as it was sent.
    pub const fn new(url: String) -> Self {
        Self(url)
    }

    /// The URL itself. Never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for CallbackUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallbackUrl(…)")
    }
}

impl serde::Serialize for CallbackUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for CallbackUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

impl_schema!(
    CallbackUrl,
    "CallbackUrl",
    described(
        json!({"type": "string", "format": "uri", "maxLength": 2048, "examples": ["https://agent-alpha.example.net/doorstep"]}),
        &["An absolute https URL without user name, password and fragment; with `hooks.allow_http` also http."]
    )
);
