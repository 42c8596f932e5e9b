//! The conformance suite over real database files, and what is this store's own: files, damage, plans, bounds.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper of a case may fail the case, as the case itself may"
)]

mod append;
mod backup;
mod conformance;
mod consumers;
mod damage;
mod export;
mod full;
mod hooks;
mod identity;
mod inbox;
mod listener;
mod opening;
mod plans;
mod statements;
mod support;
mod units;
mod write_ahead_log;
