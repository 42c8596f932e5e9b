//! What these tests stand on.

mod hooks;
mod http;
mod inboxes;
mod memory;
mod ports;
mod world;

pub(crate) use hooks::{HookRows, Receivers};
pub(crate) use http::{Answer, Wire};
pub(crate) use inboxes::Inboxes;
pub(crate) use memory::Memory;
pub(crate) use world::{Options, World};

use std::time::Duration;

use tokio::time::Instant;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `holds`.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
