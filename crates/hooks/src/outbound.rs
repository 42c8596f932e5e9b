//! The port to the outside: the one guarded HTTP client.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error;

use crate::{HookUrl, UrlRefusal};

/// A POST.
#[derive(Clone, Debug)]
pub struct OutboundRequest {
    /// Where to.
    pub url: HookUrl,
    /// Every header but `Host` and `Content-Length`; the client adds none that is here, and nobody's settings can.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
    /// From the look-up of the name to the end of the answer's body.
    pub timeout: Duration,
    /// Bytes of the answer's body that are read; what follows is not.
    pub answer_max: usize,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundAnswer {
    /// The status; 3xx is not followed.
    pub status: u16,
    /// The header `Retry-After`, as it was written.
    pub retry_after: Option<String>,
    /// The body, up to `answer_max`. Only answers to challenges are looked at.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum OutboundError {
    /// The URL may not be called; nothing was dialled.
    #[error("refused: {0}")]
    Refused(UrlRefusal),
    /// The name could not be resolved.
    #[error("the host name cannot be resolved")]
    Dns,
    /// Nobody listens, or the network is down.
    #[error("no connection")]
    Connect,
    /// The certificate or the handshake is not acceptable.
    #[error("no secure connection")]
    Tls,
    /// Not done within the time.
    #[error("no answer in time")]
    Timeout,
    /// What came is no HTTP, or broke off.
    #[error("the answer cannot be read")]
    Protocol,
}

/// The guarded client. Every outbound call of the product goes through it.
///
/// Each call checks scheme, port, allow-list and every address of the host, dials exactly an address that was checked, follows no redirect and uses no proxy.
#[async_trait]
pub trait OutboundClient: Send + Sync {
    /// Whether `url` may be called now: looks its name up, dials nothing.
    ///
    /// # Errors
    /// [`UrlRefusal`]; [`UrlRefusal::Unresolvable`] when the name has no address.
    async fn check(&self, url: &HookUrl) -> Result<(), UrlRefusal>;
    /// Sends and reads the answer. Dropping the call ends it.
    ///
    /// # Errors
    /// [`OutboundError`].
    async fn post(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError>;
}
