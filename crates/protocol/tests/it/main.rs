//! The wire formats, as files and as rules.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

// The name that every other crate knows it by.
extern crate doorstep_protocol as protocol;

mod admin;
mod bodies;
mod cloudevents;
mod contract;
mod events;
mod frames;
mod golden;
mod hooks;
mod inbox;
mod properties;
mod publish;
mod schemas;
mod texts;
