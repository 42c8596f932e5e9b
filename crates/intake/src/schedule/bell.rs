//! How the promoter learns that something was scheduled.

use std::sync::Arc;

use tokio::sync::Notify;

/// Wakes the promoter when something was scheduled. A ring that nobody hears is kept until somebody listens.
#[derive(Clone, Debug, Default)]
pub struct ScheduleBell(Arc<Notify>);

impl ScheduleBell {
    /// Something was scheduled.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    pub(super) async fn rung(&self) {
        self.0.notified().await;
    }
}
