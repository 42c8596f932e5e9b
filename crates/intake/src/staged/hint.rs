//! How the mover learns that something may have been staged.

use std::sync::Arc;

use tokio::sync::Notify;

/// Wakes the mover before its time. A ring that nobody hears is kept until somebody listens.
#[derive(Clone, Debug, Default)]
pub struct StagedHint(Arc<Notify>);

impl StagedHint {
    /// Something may have been staged.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    pub(super) async fn rung(&self) {
        self.0.notified().await;
    }
}
