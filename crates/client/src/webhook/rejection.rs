//! Why a request is not believed.

use thiserror::Error;

/// Why a request is not believed. Whoever sent it is to be told no more than 401.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WebhookRejection {
    /// A header is missing.
    #[error("the header {0} is missing")]
    Missing(&'static str),
    /// A header does not have its form, or is there twice.
    #[error("the header {0} is malformed")]
    Malformed(&'static str),
    /// It was signed longer ago than is tolerated, or its signature has expired.
    #[error("it was signed too long ago; are the clocks right?")]
    TooOld,
    /// It was signed further ahead than is tolerated.
    #[error("it was signed in the future; are the clocks right?")]
    TooNew,
    /// The body is not what the digest says.
    #[error("the body does not match its digest")]
    Digest,
    /// No key of this receiver has made the signature.
    #[error("no known key has made the signature")]
    Signature,
}
