//! Carries hints between nodes over NATS core: for fleets whose hints are too many for one database to pass on.
//!
//! Architecture invariant: hints only. Nothing is stored in NATS, nothing waits for it, and a message that is lost costs latency and nothing else.

mod options;
mod relay;

pub use options::{NatsOptions, OptionsError};
pub use relay::NatsRelay;
