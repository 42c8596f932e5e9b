//! The client against servers that say what the tests tell them to.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod consumer_acks;
mod consumer_connections;
mod consumer_limits;
mod consumer_repeats;
mod errors_page;
mod gateway;
mod http;
mod inbox;
mod polling;
mod reader;
mod rest;
mod support;
mod webhook;
