//! Hints over a real NATS server.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

// The name that every other crate knows it by.
extern crate doorstep_hint_nats as hint_nats;

mod relay;
