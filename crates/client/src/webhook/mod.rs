//! Verifying what Doorstep sends: for receivers of notify hooks and callbacks, whatever HTTP server they use.
//!
//! A receiver verifies over the raw bytes of the body, refuses what it cannot verify, answers at once, and does its work afterwards:
//!
//! ```
//! use doorstep_client::{Arrival, SeenDeliveries, WebhookHeaders, WebhookSecret, WebhookVerifier};
//!
//! # fn example(request_headers: &[(String, String)], body: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let verifier = WebhookVerifier::new([WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?])?;
//! let seen = SeenDeliveries::default();
//!
//! let headers: WebhookHeaders = request_headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
//! let delivery = verifier.verify(&headers, body)?; // on an error: answer 401 and do nothing
//! if seen.note(&delivery) == Arrival::First {
//!     // claim the work
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Must not know HTTP servers, nor what a ring is about.

mod challenge;
mod headers;
mod message;
mod rejection;
mod secret;
mod seen;
mod standard;
mod structured;
mod verifier;

pub use challenge::{WebhookChallenge, WebhookProver};
pub use headers::WebhookHeaders;
pub use message::WebhookMessage;
pub use rejection::WebhookRejection;
pub use secret::{InvalidWebhookKey, ServerPublicKey, WebhookKey, WebhookSecret};
pub use seen::{Arrival, SeenDeliveries};
pub use verifier::{NoWebhookKeys, VerifiedDelivery, WebhookVerifier};
