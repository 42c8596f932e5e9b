//! Commands against a server that says what the tests tell it to.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod administration;
mod follow;
mod help;
mod http;
mod inbox;
mod listen;
mod publish;
mod support;
mod work;
