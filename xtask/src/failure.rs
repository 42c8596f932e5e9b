//! The one error of a task: a sentence for the person who ran it.

use std::fmt;

/// Why a task did not succeed. Its text says what to do where that is known.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure that says `message`.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// "failed to `attempt`: `cause`".
    pub(crate) fn because(attempt: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self(format!("failed to {attempt}: {cause}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
