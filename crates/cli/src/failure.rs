//! How a command fails: what is said, and with which exit code.

use std::process::ExitCode;

use client::{ClientError, ConsumerError, InvalidOptions, told};
use protocol::{CloseCode, ProblemCode};
use thiserror::Error;

use crate::subject::Subject;

/// Why a command did not succeed. Shown as one sentence on standard error.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The arguments or the input make no sense.
    #[error("{0}")]
    Usage(String),
    /// URL, token or configuration file are missing or wrong.
    #[error("{0}")]
    Configuration(String),
    /// The server refused, or could not be asked.
    #[error("{}", told(.0))]
    Client(#[from] ClientError),
    /// The server refused; `text` says more of what than the error.
    #[error("{text}")]
    Refused {
        /// What is said.
        text: String,
        /// Why.
        error: ClientError,
    },
    /// The token, which was good, is not any more.
    #[error("{0}")]
    Unauthenticated(String),
    /// Something else went wrong.
    #[error("{0}")]
    Failed(String),
    /// The consumer was taken over by somebody else.
    #[error("the consumer was taken over by a newer connection or poll; whoever it is goes on with it")]
    Replaced,
    /// There was nothing to work on.
    #[error("there is nothing to do")]
    NothingToDo,
    /// Whoever read the output has gone.
    #[error("standard output was closed")]
    OutputClosed,
}

/// Exit codes, as `--help` documents them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused by the server, or failed; standard error says why
  2  usage or configuration error; nothing was done
  3  follow only: the consumer was taken over by somebody else
  4  the token is not accepted: unknown, expired or revoked";

/// The same of `doorstep work`.
pub(crate) const WORK_EXIT_CODES: &str = "\
Exit codes:
  0  stopped by a signal; with --once or --idle-timeout: something was there, and every command has succeeded or asked for later
  1  refused by the server, or failed; with --once or --idle-timeout also: a command has failed or lost its lease; stopped at once by a
     second signal
  2  usage or configuration error, or the command cannot be started
  3  with --once or --idle-timeout: there was nothing to do
  4  the token is not accepted: unknown, expired or revoked";

impl Failure {
    /// A failure of reading or writing.
    pub(crate) fn io(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Configuration(_) => 2,
            Self::Replaced | Self::NothingToDo => 3,
            Self::Unauthenticated(_) => 4,
            Self::Client(error) | Self::Refused { error, .. } if error.code() == Some(ProblemCode::Unauthenticated) => 4,
            Self::Client(_) | Self::Refused { .. } | Self::Failed(_) | Self::OutputClosed => 1,
        }
    }

    /// The failure as a sentence, of a command that is about `subject`.
    pub(crate) fn tell(&self, subject: &Subject) -> String {
        match self {
            Self::Client(error) => subject.tell(error),
            other => other.to_string(),
        }
    }

    /// What may help, where the message alone does not.
    pub(crate) fn hint(&self, subject: &Subject) -> Option<String> {
        const TOKEN: &str = "check the token: --token-file, DOORSTEP_TOKEN or the configuration file";
        match self {
            Self::Unauthenticated(_) => Some(TOKEN.to_owned()),
            Self::Client(error) | Self::Refused { error, .. } => match (error, error.code()) {
                (ClientError::Unreachable { .. }, _) => {
                    Some("is it running there? --url, DOORSTEP_URL or the configuration file name another server".to_owned())
                }
                (_, Some(ProblemCode::Unauthenticated)) => Some(TOKEN.to_owned()),
                _ => subject.hint(error),
            },
            _ => None,
        }
    }
}

impl From<InvalidOptions> for Failure {
    fn from(error: InvalidOptions) -> Self {
        Self::Configuration(told(&error))
    }
}

impl From<ConsumerError> for Failure {
    fn from(error: ConsumerError) -> Self {
        match error {
            ConsumerError::Replaced => Self::Replaced,
            ConsumerError::Refused(error) => Self::Client(error),
            error @ ConsumerError::Closed { code: CloseCode::Unauthenticated } => Self::Unauthenticated(told(&error)),
            error => Self::Failed(told(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use client::{Client, ClientError, ClientOptions, ConsumerError};
    use protocol::{CloseCode, Problem, ProblemCode};

    use super::Failure;

    #[test]
    fn a_refusal_names_its_code_and_its_request() {
        let problem = Box::new(Problem::new(ProblemCode::NotFound, "no such consumer", "r-7"));
        let failure = Failure::from(ClientError::Problem { problem, retry_after: None });
        assert_eq!(failure.to_string(), "no such consumer [not_found, request r-7]");
        assert_eq!(failure.code(), 1);
    }

    #[test]
    fn a_replaced_consumer_has_an_exit_code_of_its_own() {
        assert_eq!(Failure::from(ConsumerError::Replaced).code(), 3);
    }

    #[test]
    fn a_token_that_is_not_accepted_has_an_exit_code_of_its_own() {
        let problem = Box::new(Problem::new(ProblemCode::Unauthenticated, "it was revoked", "r"));
        assert_eq!(Failure::from(ClientError::Problem { problem, retry_after: None }).code(), 4);
        assert_eq!(Failure::from(ConsumerError::Closed { code: CloseCode::Unauthenticated }).code(), 4);
        assert_eq!(Failure::from(ConsumerError::Closed { code: CloseCode::Internal }).code(), 1);
    }

    #[test]
    fn an_address_that_is_not_one_is_a_configuration_error_with_its_reason() {
        let failure = Failure::from(Client::new(ClientOptions::new("http://sam:x@localhost")).unwrap_err());
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("credential"), "{failure}");
    }
}
