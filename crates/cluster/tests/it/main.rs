//! Rules of nodes over one store, each held by a test of its name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

// The name that every other crate knows it by.
extern crate doorstep_cluster as cluster;

mod leases;
mod memory;
