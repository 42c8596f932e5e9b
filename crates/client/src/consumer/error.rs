//! What a consumer hands out instead of an event.

use protocol::{CloseCode, GatewayError, ProblemCode, ResyncReason};
use thiserror::Error;

use crate::ClientError;

/// Something the application has to know. After one that [is terminal](ConsumerError::is_terminal) nothing comes any more.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConsumerError {
    /// A newer connection or poll has taken the consumer over. Terminal: two that return would replace each other for ever.
    #[error("the consumer was taken over by a newer connection or poll")]
    Replaced,
    /// The server has closed the connection for a reason that a new connection does not change. Terminal.
    #[error("the server has closed the connection: {name} ({number}). {why}", name = code.name(), number = code.number(), why = code.describe())]
    Closed {
        /// The close code.
        code: CloseCode,
    },
    /// The server has refused the connection or poll for good, for example because the token is not valid. Terminal.
    #[error("the server has refused the consumer")]
    Refused(#[source] ClientError),
    /// The token is not an agent's: people and apps have no consumers and read with a cursor of their own. Terminal.
    #[error("the token belongs to {kind} {id}; only agents have consumers")]
    NotAnAgent {
        /// The kind of principal that it belongs to.
        kind: String,
        /// The principal.
        id: domain::PrincipalId,
    },
    /// Events were missed: the position could not be served and delivery goes on after `head_seq`. Read the current state afresh.
    #[error("events were missed ({reason}): delivery goes on after {head_seq}", reason = reason_word(*reason))]
    ResyncRequired {
        /// Why; `None` when a newer server gives a reason that this client does not know.
        reason: Option<ResyncReason>,
        /// Where delivery goes on.
        head_seq: domain::Seq,
        /// The lowest retained position, when the server said it.
        floor_seq: Option<domain::Seq>,
    },
    /// The server sends again and again what this client cannot read. Terminal.
    #[error("what the server sends cannot be read: {cause}")]
    Unreadable {
        /// What is wrong with it, for people.
        cause: String,
    },
    /// The server has refused an op and keeps the connection.
    #[error("the server has refused {}: {} [{}]", .0.refused_op, .0.detail, .0.code)]
    OpRefused(GatewayError),
    /// Acknowledgements could not be brought to the server in time; the events come again.
    #[error("acknowledgements could not be brought to the server: events after {confirmed} come again")]
    Unconfirmed {
        /// The position that the server is known to have.
        confirmed: domain::Seq,
    },
}

impl ConsumerError {
    /// Whether nothing comes after it.
    pub fn is_terminal(&self) -> bool {
        !matches!(self, Self::ResyncRequired { .. } | Self::OpRefused(_) | Self::Unconfirmed { .. })
    }

    /// The code of a refusal, when it is one.
    pub fn code(&self) -> Option<ProblemCode> {
        match self {
            Self::Refused(error) => error.code(),
            Self::OpRefused(error) => error.code.known(),
            _ => None,
        }
    }
}

fn reason_word(reason: Option<ResyncReason>) -> &'static str {
    reason.map_or("unknown reason", ResyncReason::as_str)
}
