//! Closed lists of words on the wire: written exactly, read strictly from clients and tolerantly from servers.

use std::fmt;
use std::marker::PhantomData;

use domain::ActorKind;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A closed list of words.
pub trait Vocabulary: Copy + 'static {
    /// What a member of it is, for messages.
    const EXPECTATION: &'static str;

    /// Every word.
    fn all() -> &'static [Self];

    /// The word on the wire.
    fn as_str(self) -> &'static str;

    /// The member that `word` names.
    fn from_word(word: &str) -> Option<Self> {
        Self::all().iter().copied().find(|member| member.as_str() == word)
    }
}

/// Reads a word strictly: a text, and one of the list.
pub(crate) fn deserialize_word<'de, T: Vocabulary, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Words<T>(PhantomData<T>);

    impl<T: Vocabulary> serde::de::Visitor<'_> for Words<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(T::EXPECTATION)
        }

        fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<T, E> {
            T::from_word(word).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(word), &self))
        }
    }

    deserializer.deserialize_str(Words(PhantomData))
}

/// Declares a vocabulary as an enum: its words, its documentation in schemas, its reading and writing.
macro_rules! vocabulary {
    (
        $(#[doc = $doc:literal])+
        pub enum $name:ident: $expectation:literal {
            $($(#[doc = $word_doc:literal])+ $member:ident = $word:literal,)+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[doc = $word_doc])+ $member,)+
        }

        impl $name {
            /// Every one, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$member),+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$member => $word,)+
                }
            }

            /// What it means, in one or two sentences.
            pub fn describe(self) -> String {
                let lines: &[&str] = match self {
                    $(Self::$member => &[$($word_doc),+],)+
                };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
            }

            fn wire_schema() -> serde_json::Value {
                let words: Vec<_> = Self::ALL.iter().map(|member| member.as_str()).collect();
                let mut lines = vec![$($doc.trim().to_owned()),+];
                lines.push(String::new());
                lines.extend(Self::ALL.iter().map(|member| format!("- `{}`: {}", member.as_str(), member.describe())));
                serde_json::json!({"type": "string", "enum": words, "description": lines.join("\n")})
            }
        }

        impl $crate::Vocabulary for $name {
            const EXPECTATION: &'static str = $expectation;

            fn all() -> &'static [Self] {
                Self::ALL
            }

            fn as_str(self) -> &'static str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::vocabulary::deserialize_word(deserializer)
            }
        }

        $crate::schema::impl_schema!($name, stringify!($name), Self::wire_schema());
    };
}

pub(crate) use vocabulary;

/// A word as a client reads it: one that it knows, or one that a newer server has added.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Open<T> {
    /// A word of the list.
    Known(T),
    /// Another word, kept as it came.
    Other(String),
}

impl<T: Vocabulary> Open<T> {
    /// The word, when it is of the list.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(member) => Some(*member),
            Self::Other(_) => None,
        }
    }

    /// The word as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(member) => member.as_str(),
            Self::Other(word) => word,
        }
    }
}

impl<T> From<T> for Open<T> {
    fn from(member: T) -> Self {
        Self::Known(member)
    }
}

impl<T: Vocabulary> fmt::Display for Open<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<T: Vocabulary> Serialize for Open<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: Vocabulary> Deserialize<'de> for Open<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyWord<T>(PhantomData<T>);

        impl<T: Vocabulary> serde::de::Visitor<'_> for AnyWord<T> {
            type Value = Open<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTATION)
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Open<T>, E> {
                Ok(T::from_word(word).map_or_else(|| Open::Other(word.to_owned()), Open::Known))
            }
        }

        deserializer.deserialize_str(AnyWord(PhantomData))
    }
}

impl Vocabulary for ActorKind {
    const EXPECTATION: &'static str = "a kind of actor: person, app, agent or server";

    fn all() -> &'static [Self] {
        &[Self::Person, Self::App, Self::Agent, Self::Server]
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::App => "app",
            Self::Agent => "agent",
            Self::Server => "server",
        }
    }
}
