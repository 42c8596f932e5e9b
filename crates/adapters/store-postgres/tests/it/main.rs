//! The conformance suite over databases of a real cluster, and what is this store's own: the cost of its statements, several nodes.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper of a case may fail the case, as the case itself may"
)]

mod administration;
mod appender;
mod conformance;
mod exchange;
mod hints;
mod lanes;
mod nodes;
mod plans;
mod proxy;
mod reading;
mod settings;
mod staged;
mod statements;
mod upkeep;
