//! Why a run broke. A missed target is no failure.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::wire::WireError;

/// What broke.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The operating system refused something.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The refusal.
        source: io::Error,
    },
    /// The raw database loop failed.
    #[error("the raw database loop: {0}")]
    Database(#[from] rusqlite::Error),
    /// The raw WebSocket loop failed.
    #[error("the raw WebSocket loop: {0}")]
    Push(#[from] tokio_tungstenite::tungstenite::Error),
    /// A connection to the server failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The server refused what the row needs.
    #[error("{request} was answered with {status}: {body}")]
    Refused {
        /// Method and path.
        request: String,
        /// The status.
        status: u16,
        /// What it said.
        body: String,
    },
    /// A measurement did not end.
    #[error("{0}: not done in time")]
    Late(&'static str),
    /// Something came out otherwise than it must, so that its speed means nothing.
    #[error("{0}")]
    Wrong(String),
    /// There is no server to measure.
    #[error("there is no server at {}; `cargo xtask bench` builds it", .0.display())]
    NoServer(PathBuf),
}

impl Failure {
    /// What to do with an error of the operating system while `doing` something.
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
