//! The dispatcher: a durable, fenced consumer of every tenant's log that turns committed rows into outstanding rings.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::Hooks;

/// Reads logs and stores rings.
#[derive(Debug)]
pub struct Dispatcher {
    hooks: Arc<Hooks>,
}

impl Dispatcher {
    /// A dispatcher for these hooks.
    pub fn new(hooks: Arc<Hooks>) -> Self {
        Self { hooks }
    }

    /// Dispatches until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        let _ = &self.hooks;
        stop.cancelled().await;
    }
}
