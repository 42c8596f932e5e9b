//! Short texts of bodies: a type each, checked where they enter.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::schema::{described, impl_schema};

/// Declares a text with a rule.
macro_rules! wire_text {
    ($(#[doc = $doc:literal])+ $name:ident, $expectation:literal, $valid:expr, $schema:expr) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// What a valid one looks like, as a sentence for people.
            pub const EXPECTATION: &'static str = $expectation;

            /// Checks `text`.
            ///
            /// # Errors
            /// [`Self::EXPECTATION`] when it does not have that form.
            pub fn parse(text: String) -> Result<Self, &'static str> {
                let valid: fn(&str) -> bool = $valid;
                if valid(&text) { Ok(Self(text)) } else { Err(Self::EXPECTATION) }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse(<String as serde::Deserialize>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }

        impl_schema!($name, stringify!($name), described($schema, &[$($doc),+]));
    };
}

wire_text!(
    /// A short word or reference of the publisher's own, such as a kind or an identifier in another system; no control characters.
    Label, "1 to 256 characters without control characters", |text| is_line(text, 256),
    json!({"type": "string", "minLength": 1, "maxLength": 256, "examples": ["meeting_room_message"]})
);
wire_text!(
    /// A name shown to people; no control characters.
    DisplayName, "1 to 200 characters without control characters", |text| is_line(text, 200),
    json!({"type": "string", "minLength": 1, "maxLength": 200, "examples": ["Agent Alpha"]})
);
wire_text!(
    /// A queue: the label on an inbox item by which workers choose.
    QueueName, "a lowercase letter or digit, then at most 63 of a-z, 0-9, '_' and '-'", is_queue,
    json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$", "examples": ["inbox"]})
);

pub(crate) use wire_text;

/// A word of ASCII letters, digits and what separates them in names.
pub(crate) fn is_token(text: &str, max: usize) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    !text.is_empty() && text.len() <= max && text.bytes().all(plain)
}

fn is_line(text: &str, max_chars: usize) -> bool {
    !text.is_empty() && text.len() <= 4 * max_chars && text.chars().count() <= max_chars && !text.chars().any(char::is_control)
}

fn is_queue(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let Some((&first, rest)) = text.as_bytes().split_first() else { return false };
    text.len() <= 64 && plain(first) && rest.iter().all(|&b| plain(b) || matches!(b, b'_' | b'-'))
}

/// One line about an event that hooks and listings show. It informs and never instructs: characters that control
/// the text or its direction become spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary(String);

impl Summary {
    /// The most characters that one may have.
    pub const MAX_CHARS: usize = 200;
    /// What a valid one looks like, as a sentence for people.
    pub const EXPECTATION: &'static str = "1 to 200 characters, not only white space";

    /// Makes `text` one line: control characters and runs of white space become one space each, the ends are trimmed.
    ///
    /// # Errors
    /// [`Self::EXPECTATION`] when `text` is too long or nothing is left of it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.chars().count() > Self::MAX_CHARS {
            return Err(Self::EXPECTATION);
        }
        let mut line = String::with_capacity(text.len());
        for word in text.split(|c: char| c.is_whitespace() || c.is_control() || turns_text(c)).filter(|word| !word.is_empty()) {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if line.is_empty() { Err(Self::EXPECTATION) } else { Ok(Self(line)) }
    }

    /// The line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Summary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl_schema!(
    Summary,
    "Summary",
    json!({
        "type": "string", "minLength": 1, "maxLength": Summary::MAX_CHARS, "examples": ["Sam asks about the invoice"],
        "description": "One line about an event that hooks and listings show; control characters become spaces.",
    })
);

/// Whether a character only changes the direction of the text around it, by which a line can show what it does not say.
const fn turns_text(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{061C}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// A credential on the wire. Its value never appears in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a credential.
    pub const fn new(value: String) -> Self {
        Self(value)
    }

    /// The credential itself. Never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The credential itself, without a copy. Never log it.
    pub fn into_exposed(self) -> String {
        self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

impl_schema!(
    Secret,
    "Secret",
    json!({
        "type": "string", "format": "password", "examples": ["dsp_agent_…"],
        "description": "A credential. It is shown once; stored is its digest, or, where the server signs with it, its encrypted form.",
    })
);
