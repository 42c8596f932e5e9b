//! Identifiers: a type each, checked where they enter.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// Why a text is not an identifier of its kind.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
#[error("{expectation}")]
pub struct InvalidId {
    /// What the identifier must look like, as a sentence for people.
    pub expectation: &'static str,
}

/// Declares a text identifier: cheap to clone, valid by construction.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $expectation:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// What a valid one looks like, as a sentence for people.
            pub const EXPECTATION: &'static str = $expectation;

            /// Checks `text`.
            ///
            /// # Errors
            /// [`InvalidId`] when it does not have the form of [`Self::EXPECTATION`].
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) { Ok(Self(Arc::from(text))) } else { Err(InvalidId { expectation: Self::EXPECTATION }) }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Declares an identifier that is a UUID.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId { expectation: "a UUID" })
            }
        }
    };
}

text_id!(
    /// The isolation unit: owns one log, its principals, channels and inboxes.
    TenantId, "a lowercase letter or digit, then at most 63 of a-z, 0-9, '_', '.' and '-'", is_name
);
text_id!(
    /// A person, app or agent of a tenant.
    PrincipalId, "a lowercase letter or digit, then at most 63 of a-z, 0-9, '_', '.' and '-'", is_name
);
text_id!(
    /// A space: a group of channels.
    SpaceId, "a lowercase letter or digit, then at most 63 of a-z, 0-9, '_', '.' and '-'", is_name
);
text_id!(
    /// A channel's own name within its space.
    ChannelId, "a lowercase letter or digit, then at most 63 of a-z, 0-9, '_', '.' and '-'", is_name
);
text_id!(
    /// A consumer of an agent (seed 004, design note 3).
    ConsumerName, "a lowercase letter or digit, then at most 63 of a-z, 0-9, '_' and '-'", is_consumer_name
);
text_id!(
    /// A label on an inbox item by which workers choose.
    QueueName, "a lowercase letter or digit, then at most 63 of a-z, 0-9, '_' and '-'", is_consumer_name
);
text_id!(
    /// A session of an agent that is told when work arrives; no credential.
    AgentSessionId, "`sess_`, then 1 to 59 letters and digits", is_agent_session
);
text_id!(
    /// What happened: dot-separated words.
    EventType, "at most 128 characters: words of a-z, 0-9, '_' and '-', separated by single dots", is_event_type
);
text_id!(
    /// By what a publish is recognised when it is repeated.
    DeduplicationKey, "1 to 256 characters without control characters", is_deduplication_key
);
text_id!(
    /// A channel, written `space/channel`.
    ChannelRef, "space/channel, each a lowercase letter or digit, then at most 63 of a-z, 0-9, '_', '.' and '-'", is_channel_ref
);

uuid_id!(
    /// An event; UUIDv7.
    EventId
);
uuid_id!(
    /// A gateway session: survives its socket for the resume window.
    SessionId
);
uuid_id!(
    /// An access token, not its secret.
    TokenId
);
uuid_id!(
    /// A grant.
    GrantId
);
uuid_id!(
    /// The identity of a log's history; another one after a restore.
    SyncEpoch
);
uuid_id!(
    /// One server process, from its start to its end.
    NodeId
);

impl PrincipalId {
    /// The name under which the server acts. No principal can be created under it.
    pub const SERVER: &'static str = "server";

    /// The server itself as an actor.
    pub fn server() -> Self {
        Self(Arc::from(Self::SERVER))
    }
}

impl ConsumerName {
    /// The consumer of an agent that names none.
    pub const DEFAULT: &'static str = "default";
}

impl Default for ConsumerName {
    fn default() -> Self {
        Self(Arc::from(Self::DEFAULT))
    }
}

impl QueueName {
    /// The queue of an item that names none.
    pub const DEFAULT: &'static str = "inbox";
}

impl Default for QueueName {
    fn default() -> Self {
        Self(Arc::from(Self::DEFAULT))
    }
}

impl ChannelRef {
    /// Joins a space and a channel.
    pub fn new(space: &SpaceId, channel: &ChannelId) -> Self {
        Self(Arc::from(format!("{space}/{channel}")))
    }

    /// The space part.
    pub fn space(&self) -> &str {
        self.0.split_once('/').map_or("", |(space, _)| space)
    }

    /// The channel part.
    pub fn channel(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, channel)| channel)
    }
}

fn is_name(text: &str) -> bool {
    is_word(text, |b| matches!(b, b'_' | b'.' | b'-'))
}

fn is_consumer_name(text: &str) -> bool {
    is_word(text, |b| matches!(b, b'_' | b'-'))
}

fn is_agent_session(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("sess_") else { return false };
    (1..60).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_word(text: &str, also: fn(u8) -> bool) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let Some((&first, rest)) = text.as_bytes().split_first() else { return false };
    text.len() <= 64 && plain(first) && rest.iter().all(|&b| plain(b) || also(b))
}

fn is_event_type(text: &str) -> bool {
    let in_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    text.len() <= 128 && text.split('.').all(|word| !word.is_empty() && word.bytes().all(in_word))
}

fn is_deduplication_key(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= 256 && !text.chars().any(char::is_control)
}

fn is_channel_ref(text: &str) -> bool {
    text.split_once('/').is_some_and(|(space, channel)| is_name(space) && is_name(channel))
}

#[cfg(test)]
mod tests {
    use super::{ChannelRef, ConsumerName, EventType, PrincipalId};

    #[test]
    fn consumer_names_follow_the_pattern() {
        for good in ["default", "a", "0", "work-2_b", &"x".repeat(64)] {
            assert!(ConsumerName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "_a", "A", "a.b", "a b", "ä", "a/b", &"x".repeat(65)] {
            assert!(ConsumerName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn event_types_are_dotted_words() {
        for good in ["message.created", "a", "github.pull_request", "x-y.0"] {
            assert!(EventType::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "A", "a b", &"x".repeat(129)] {
            assert!(EventType::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn channels_have_exactly_one_slash() {
        let channel = ChannelRef::parse("support/general").unwrap();
        assert_eq!((channel.space(), channel.channel()), ("support", "general"));
        for bad in ["support", "support/", "/general", "a/b/c", "a/B"] {
            assert!(ChannelRef::parse(bad).is_err(), "{bad}");
        }
        assert!(PrincipalId::parse("agent.alpha-1_b").is_ok());
    }
}
