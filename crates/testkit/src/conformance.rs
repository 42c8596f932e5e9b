//! The conformance suite: what every store must do, said once.
//!
//! A case is an async function over a [`Harness`]; each sentence of the ports' documentation has one. A store's tests hold
//! `testkit::conformance!(MyHarness)`, which expands to one test for each case of [`list`].
//!
//! What is about one engine alone (files, damage of its rows, plans of its statements) is in that store's own tests.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on fails by a panic")]

pub mod everything;
pub mod harness;
pub mod hooks;
pub mod inbox;
pub mod list;
pub mod support;

mod append;
mod audit;
mod concurrency;
mod consumers;
mod damage;
mod identity;
mod listener;
mod pages;
mod retention;
mod schedule;
mod texts;
mod units;

use std::time::Duration;

pub use harness::{Harness, Ports, Subject};

/// No case takes as long.
const AT_MOST: Duration = Duration::from_mins(5);

/// A case.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its place and name.
    pub name: &'static str,
    /// Runs it on a runtime of its own; panics when it fails.
    pub run: fn(&dyn Harness),
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Runs one case on a runtime of its own.
pub(crate) fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let in_time = runtime.block_on(async { tokio::time::timeout(AT_MOST, case).await });
    assert!(in_time.is_ok(), "it hangs");
}

/// Waits within a property, which is no async function.
pub(crate) fn waiting<T>(work: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work))
}
