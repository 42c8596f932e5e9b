//! The rules of the inbox: the machine against a naive table, the use cases over a store in memory.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

// The name that every other crate knows it by.
extern crate doorstep_inbox as inbox;

mod acknowledging;
mod arrows;
mod claiming;
mod hearing;
mod identities;
mod memory;
mod memory_tx;
mod model;
mod operating;
mod polling;
mod races;
mod ringing;
mod sweeping;
mod waiting;
mod world;
