//! What tests are made of: server processes, raw gateway peers, a clock that is turned by hand, histories and the checker of histories.
//!
//! A product of its own: when a test is hard to write, this is where it gets easier. Nothing here is used outside tests and benchmarks.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a test that cannot go on says so by a panic"
)]

mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod deadline;
mod history;
mod http;
mod leases;
#[cfg(feature = "nats")]
pub mod nats;
mod peer;
mod played;
#[cfg(feature = "postgres")]
pub mod postgres;
mod process;
mod setup;

pub use bytes::Bytes;
pub use clock::ManualClock;
pub use deadline::{Deadline, eventually};
pub use history::{Checker, Fault, Record};
pub use http::{Answer, Http, OpenStream};
pub use leases::{LeaseChecker, LeaseFault, LeaseRecord};
pub use peer::{Frame, Peer};
pub use played::{PlayedRequest, PlayedServer, PlayedStream};
pub use process::{ServerOptions, ServerProcess};
pub use setup::{Cast, cast};
pub use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};
