//! The whole interface over a store in memory: real routes, real engine, real sockets.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod connections;
mod consumers;
mod documents;
mod faults;
mod hooks_callbacks;
mod hooks_notify;
mod inbox;
mod inbox_operators;
mod inbox_signals;
mod operation;
mod publishing;
mod requests;
mod sockets;
mod streams;
mod support;
