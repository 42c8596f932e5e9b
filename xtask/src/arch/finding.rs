//! What a check reports.

use std::fmt;

/// One breach of a rule: where, and what is wrong, in words that say how to put it right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    place: String,
    problem: String,
}

impl Finding {
    /// `problem` at `place`, a path from the root, with a line where there is one.
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }

    /// `problem` at a line, counted from 1, of a file.
    pub(crate) fn at(file: &str, line: usize, problem: impl Into<String>) -> Self {
        Self::new(format!("{file}:{line}"), problem)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}
