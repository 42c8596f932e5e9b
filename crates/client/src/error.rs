//! What a call can end with instead of an answer.

use std::time::Duration;

use protocol::{Problem, ProblemCode};
use thiserror::Error;

use crate::address::InvalidAddress;

/// Why a client could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InvalidOptions {
    /// The address is not one.
    #[error("the server's address is not valid")]
    Address(#[from] InvalidAddress),
    /// The token cannot be one. Its value is not shown.
    #[error("the token has characters that no token has")]
    Token,
    /// TLS cannot be set up, for example because the system has no root certificates.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Http(#[source] reqwest::Error),
}

/// Why a call has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused. Match `problem.code`; `title` and `detail` are for people.
    #[error("{}", refusal(problem))]
    Problem {
        /// The refusal.
        problem: Box<Problem>,
        /// When the server asks to come back (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// No connection could be made: nothing was sent.
    #[error("the server cannot be reached at {address}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What happened.
        #[source]
        source: reqwest::Error,
    },
    /// The connection failed afterwards: whether the request took effect is unknown.
    #[error("the connection to the server was lost")]
    Transport(#[source] reqwest::Error),
    /// No answer came in time: whether the request took effect is unknown.
    #[error("the server did not answer within {} s", waited.as_secs_f32())]
    Timeout {
        /// How long was waited.
        waited: Duration,
    },
    /// Something answered that is not this server, or a server of another version.
    #[error("unexpected answer with HTTP status {status}: {detail}")]
    Unexpected {
        /// The HTTP status.
        status: u16,
        /// What was wrong with it.
        detail: String,
    },
    /// The answer is not what the operation answers.
    #[error("the answer cannot be read")]
    Decode(#[source] serde_json::Error),
    /// The request cannot be written.
    #[error("the request cannot be written")]
    Encode(#[source] serde_json::Error),
    /// The answer is larger than this client reads.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// `ClientOptions::max_response_bytes`.
        limit: usize,
    },
}

/// Whether repeating a call can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same call would end the same way.
    Never,
    /// The call had no effect; it may be repeated after a pause.
    Harmless,
    /// The call may have had its effect: repeat it only when a repeat does no harm (a deduplication key, a monotone acknowledgement).
    IfIdempotent,
}

impl ClientError {
    /// The code of the refusal, when it is one and its code is known.
    pub fn code(&self) -> Option<ProblemCode> {
        self.problem().and_then(|problem| problem.code.known())
    }

    /// The refusal, when it is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem { problem, .. } => Some(problem),
            _ => None,
        }
    }

    /// When the server asks to come back.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether repeating the call can help.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Problem { problem, .. } => retry_of(problem),
            Self::Unreachable { .. } => Retry::Harmless,
            // What stands between answers 502 to 504 while the server restarts.
            Self::Transport(_) | Self::Timeout { .. } | Self::Unexpected { status: 502..=504, .. } => Retry::IfIdempotent,
            Self::Unexpected { .. } | Self::Decode(_) | Self::Encode(_) | Self::TooLarge { .. } => Retry::Never,
        }
    }
}

/// Codes that are not known are judged by their status.
fn retry_of(problem: &Problem) -> Retry {
    match problem.code.known() {
        Some(ProblemCode::RateLimited | ProblemCode::Overloaded | ProblemCode::StorageFull) => Retry::Harmless,
        Some(ProblemCode::InDoubt | ProblemCode::Internal | ProblemCode::Unavailable | ProblemCode::RequestTimeout) => Retry::IfIdempotent,
        None if matches!(problem.status, 429 | 500..=599) => Retry::IfIdempotent,
        Some(_) | None => Retry::Never,
    }
}

/// An error as one line for people: what happened, and what was at the bottom of it. The layers between say nothing more.
pub fn told(error: &dyn std::error::Error) -> String {
    let mut bottom = error;
    while let Some(source) = bottom.source() {
        bottom = source;
    }
    let (text, cause) = (error.to_string(), bottom.to_string());
    if text.contains(&cause) { text } else { format!("{text}: {cause}") }
}

/// A refusal as one line: what, where, and the identity under which the server has logged it.
fn refusal(problem: &Problem) -> String {
    let mut text = problem.detail.clone();
    if text.is_empty() {
        text.clone_from(&problem.title);
    }
    if let Some(pointer) = problem.pointer.as_deref().filter(|pointer| !pointer.is_empty()) {
        text = format!("{text} (at {pointer})");
    }
    text = match &problem.reason {
        Some(reason) => format!("{text} [{}, {}", problem.code, reason),
        None => format!("{text} [{}", problem.code),
    };
    format!("{text}, request {}]", problem.request_id)
}

#[cfg(test)]
mod tests {
    use protocol::{Problem, ProblemCode, Reason};

    use super::{ClientError, Retry, told};

    fn refused(problem: Problem) -> ClientError {
        ClientError::Problem { problem: Box::new(problem), retry_after: None }
    }

    #[test]
    fn a_refusal_reads_as_one_line_with_code_place_and_request() {
        let problem =
            Problem::new(ProblemCode::Forbidden, "agents only", "req-1").with_pointer("/x").with_reason(Reason::SubjectKindNotAllowed);
        assert_eq!(refused(problem).to_string(), "agents only (at /x) [forbidden, subject_kind_not_allowed, request req-1]");
    }

    #[test]
    fn an_error_is_told_with_its_first_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Layer(&'static str, #[source] Option<Box<Layer>>);

        let layered = Layer("not reached", Some(Box::new(Layer("noise", Some(Box::new(Layer("refused", None)))))));
        assert_eq!(told(&layered), "not reached: refused");
        assert_eq!(told(&Layer("refused by all", Some(Box::new(Layer("refused", None))))), "refused by all");
    }

    #[test]
    fn only_what_had_no_effect_is_harmless_to_repeat() {
        let retry = |code| refused(Problem::new(code, "x", "r")).retry();
        assert_eq!(retry(ProblemCode::Overloaded), Retry::Harmless);
        assert_eq!(retry(ProblemCode::InDoubt), Retry::IfIdempotent);
        assert_eq!(retry(ProblemCode::ValidationFailed), Retry::Never);
        assert_eq!(ClientError::Timeout { waited: std::time::Duration::from_secs(1) }.retry(), Retry::IfIdempotent);
    }
}
