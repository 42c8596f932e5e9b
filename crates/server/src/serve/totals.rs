//! What waits in all inboxes and for hooks, counted now and then: `/metrics` answers without asking the store.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hooks::{HookStore, HookTotals};
use inbox::{InboxStore, InboxTotals};
use tokio_util::sync::CancellationToken;

/// Tenants that are counted apart; the rest is not shown, so that the metric's labels stay few.
const TENANTS: usize = 100;

/// The latest count.
#[derive(Debug, Default)]
pub(super) struct Totals(Mutex<(InboxTotals, HookTotals)>);

impl Totals {
    /// The latest count; nothing before the first.
    pub(super) fn latest(&self) -> (InboxTotals, HookTotals) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts each `inbox.totals_interval` until `token` is cancelled.
    pub(super) async fn run(
        self: Arc<Self>,
        inboxes: Arc<dyn InboxStore>,
        hooks: Arc<dyn HookStore>,
        interval: Duration,
        token: CancellationToken,
    ) {
        let counting = async {
            loop {
                match (inboxes.totals(TENANTS).await, hooks.totals().await) {
                    (Ok(inboxes), Ok(hooks)) => *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (inboxes, hooks),
                    (Err(error), _) | (_, Err(error)) => {
                        tracing::warn!(error.cause = %error, "what waits could not be counted; the metrics are old");
                    }
                }
                tokio::time::sleep(interval).await;
            }
        };
        token.run_until_cancelled(counting).await;
    }
}
