//! The words: a node, what it does.

use std::fmt;
use std::sync::Arc;

use domain::{InvalidId, NodeId, Timestamp};

/// What a node says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It serves.
    Serving,
    /// It stops: no new connections, no work.
    Draining,
}

impl NodeState {
    /// The word, as stores keep it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Draining => "draining",
        }
    }

    /// The word's state.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Serving, Self::Draining].into_iter().find(|state| state.as_str() == word)
    }
}

/// One server process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Which one; another after each start.
    pub id: NodeId,
    /// What its operator calls it; not unique.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// Its release.
    pub version: String,
    /// When it started, by the store's clock.
    pub started_at: Timestamp,
    /// What it says of itself.
    pub state: NodeState,
}

/// A piece of work that one node does at a time: words of `a-z`, `0-9` and `_`, separated by dots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkName(Arc<str>);

impl WorkName {
    /// What a valid one looks like, as a sentence for people.
    pub const EXPECTATION: &'static str = "at most 64 characters: words of a-z, 0-9 and '_', separated by single dots";

    /// Checks `text`.
    ///
    /// # Errors
    /// [`InvalidId`] when it does not have the form of [`Self::EXPECTATION`].
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let in_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let is_valid = text.len() <= 64 && text.split('.').all(|word| !word.is_empty() && word.bytes().all(in_word));
        if is_valid { Ok(Self(Arc::from(text))) } else { Err(InvalidId { expectation: Self::EXPECTATION }) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeState, WorkName};

    #[test]
    fn work_is_named_by_dotted_words() {
        for good in ["hooks", "inbox.sweeper", "hooks.group_12"] {
            assert_eq!(WorkName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "a..b", "A", "a b", "a-b", &"x".repeat(65)] {
            assert!(WorkName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        for state in [NodeState::Serving, NodeState::Draining] {
            assert_eq!(NodeState::parse(state.as_str()), Some(state));
        }
        assert_eq!(NodeState::parse("asleep"), None);
    }
}
