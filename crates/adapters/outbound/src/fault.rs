//! Why a call had no answer, told from what the HTTP client reports. Says the class only, never what was found at the other end.

use std::error::Error;
use std::io::{self, ErrorKind};

use hooks::OutboundError;

/// The class of what the HTTP client reports.
pub(crate) fn class(error: &reqwest::Error) -> OutboundError {
    match () {
        () if error.is_timeout() => OutboundError::Timeout,
        () if error.is_connect() && is_tls(error) => OutboundError::Tls,
        () if error.is_connect() => OutboundError::Connect,
        () => OutboundError::Protocol,
    }
}

/// Whether a failed connection failed in its handshake: TLS says so, or the peer answered something else or hung up.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<rustls::Error>() {
            return true;
        }
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|io| matches!(io.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof)) {
            return true;
        }
        // An I/O error's source is not what it wraps, but the source of that.
        next = match io.and_then(io::Error::get_ref) {
            Some(inside) => Some(inside),
            None => error.source(),
        };
    }
    false
}
