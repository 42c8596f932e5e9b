//! The store's contract: a case for each sentence of the ports' documentation, over real database files.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper of a case may fail the case, as the case itself may"
)]

mod append;
mod audit;
mod backup;
mod consumers;
mod damage;
mod full;
mod hooks;
mod identity;
mod inbox;
mod listener;
mod opening;
mod pages;
mod plans;
mod retention;
mod schedule;
mod support;
mod units;
mod write_ahead_log;
