//! The rules of hooks: use cases, dispatcher and sender over a store in memory and receivers that are told what to answer.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

// The name that every other crate knows it by.
extern crate doorstep_hooks as hooks;

mod callbacks;
mod canary;
mod dispatching;
mod fairness;
mod identities;
mod inboxes;
mod memory;
mod memory_tx;
mod receivers;
mod registering;
mod rotating;
mod sending;
mod server_keys;
mod sharing;
mod world;
