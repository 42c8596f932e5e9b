//! Rules of the log, each held by a test of its name.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

// The name that every other crate knows it by.
extern crate doorstep_sync as sync;

mod fakes;
mod hints;
mod identities;
mod logs;
mod reads;
mod retention;
mod ring;
mod tail;
mod tail_faults;
