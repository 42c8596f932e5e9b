//! The guarded client on real sockets, with a resolver that tests play.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod addresses;
mod answers;
mod proxies;
mod rebinding;
mod spellings;
mod support;
mod tls;
