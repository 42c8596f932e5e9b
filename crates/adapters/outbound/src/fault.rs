//! Why a call had no answer, told from what the HTTP client reports. Says the class only, never what was found at the other end.

use std::error::Error;
use std::io::{self, ErrorKind};

use thiserror::Error;

use crate::guard::Refusal;

/// Why a call had no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The guard refused it: nothing was dialled.
    #[error("the URL is refused: {0}")]
    Refused(#[from] Refusal),
    /// It was not over in time.
    #[error("no complete answer in time")]
    Timeout,
    /// Nobody took the connection.
    #[error("the connection failed")]
    Connect,
    /// The certificate is not trusted or is for another name, or the peer does not speak TLS.
    #[error("the TLS handshake failed")]
    Tls,
    /// The connection broke, or what came is no HTTP.
    #[error("the connection broke, or the answer is no HTTP")]
    Broken,
    /// The call could not be made of what was given.
    #[error("the request cannot be made")]
    Request,
}

/// The class of what the HTTP client reports.
pub(crate) fn class(error: &reqwest::Error) -> Fault {
    match () {
        () if error.is_builder() => Fault::Request,
        () if error.is_timeout() => Fault::Timeout,
        () if error.is_connect() && is_tls(error) => Fault::Tls,
        () if error.is_connect() => Fault::Connect,
        () => Fault::Broken,
    }
}

/// Whether a failed connection failed in its handshake: TLS says so, or the peer answered something else or hung up.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<rustls::Error>() {
            return true;
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            let is_inside = error.get_ref().is_some_and(|inside| inside.is::<rustls::Error>());
            if is_inside || matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) {
                return true;
            }
        }
        next = error.source();
    }
    false
}
