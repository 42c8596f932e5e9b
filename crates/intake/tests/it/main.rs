//! The rules of publishing over a log and identities in memory.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

// The name that every other crate knows it by.
extern crate doorstep_intake as intake;

mod fake;
mod promotion;
mod publishing;
mod scheduling;
mod staging;
mod validation;
mod world;
