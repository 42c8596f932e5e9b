//! The product through its own binary: real processes, real sockets, a real store.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test that cannot go on says so by a panic")]
#![expect(clippy::disallowed_methods, reason = "tests own their tasks by joining them, and play clients with clocks of their own")]

mod bad_input;
mod cluster;
mod consumers;
mod durability;
mod gateway;
mod hooks;
mod inbox;
mod migrate;
mod operation;
mod people;
mod polls;
mod published;
mod rights;
mod support;
