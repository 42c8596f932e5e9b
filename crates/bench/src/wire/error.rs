//! Why a connection to the server failed.

use std::io;

use thiserror::Error;

/// What went wrong on a connection.
#[derive(Debug, Error)]
pub(crate) enum WireError {
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// The server ended the connection.
    #[error("the server ended the connection")]
    Ended,
    /// The server closed the WebSocket.
    #[error("the server closed the socket with {code} {reason}")]
    Closed {
        /// The close code; 1005 when there is none.
        code: u16,
        /// The reason.
        reason: String,
    },
    /// An answer that this client does not read.
    #[error("the server's answer is not understood: {0}")]
    Malformed(&'static str),
    /// The server refused a request.
    #[error("refused with {status}: {body}")]
    Refused {
        /// The status.
        status: u16,
        /// The beginning of what it said.
        body: String,
    },
}

impl WireError {
    /// A refusal, with as much of its text as helps.
    pub(crate) fn refused(status: u16, body: &[u8]) -> Self {
        let body = String::from_utf8_lossy(body.get(..500).unwrap_or(body)).into_owned();
        Self::Refused { status, body }
    }
}
