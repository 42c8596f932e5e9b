//! The one task per process that asks the store for the heads of all live tenants, and lets idle tails go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use domain::StoreError;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::Logs;
use crate::shared::Shared;

/// When the heads were last polled successfully, and whether the last poll failed.
#[derive(Debug)]
pub(crate) struct LastPoll(Mutex<(Instant, bool)>);

impl LastPoll {
    pub(crate) fn now() -> Self {
        Self(Mutex::new((Instant::now(), false)))
    }

    pub(crate) fn age(&self) -> Duration {
        self.with(|last| last.0.elapsed())
    }

    fn succeeded(&self) {
        let had_failed = self.with(|last| std::mem::replace(last, (Instant::now(), false)).1);
        if had_failed {
            tracing::info!("the heads of the live logs are polled again");
        }
    }

    /// A store that is away for long is told of once.
    fn failed(&self, error: &StoreError) {
        let had_failed = self.with(|last| std::mem::replace(&mut last.1, true));
        if !had_failed {
            tracing::warn!(error = %error, "the heads of the live logs cannot be polled");
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut (Instant, bool)) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Polls until cancelled or until nobody holds the logs any more.
pub(crate) async fn run(logs: Weak<Logs>, cancel: CancellationToken, interval: Duration) {
    // An interval of zero would panic, and polling without pause helps nobody.
    let mut ticks = tokio::time::interval(interval.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = cancel.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let Some(logs) = logs.upgrade() else { return };
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tick(&logs) => {}
        }
    }
}

async fn tick(logs: &Logs) {
    poll(logs).await;
    share_memory(logs);
    logs.sweep().await;
}

/// One query for all live tenants.
async fn poll(logs: &Logs) {
    let tails = logs.tails();
    let (parts, metrics) = (logs.parts(), logs.metrics());
    // The positions are read before the heads: a position that moves meanwhile is no sign of a lost history.
    let positions: Vec<_> = tails.iter().map(|tail| tail.seq()).collect();
    let tenants: Vec<_> = tails.iter().map(|tail| tail.tenant.clone()).collect();
    if !tenants.is_empty() {
        metrics.polls.increment();
        let heads = match parts.store.heads(&tenants).await {
            Ok(heads) => heads.into_iter().collect::<HashMap<_, _>>(),
            Err(error) => {
                metrics.poll_failures.increment();
                return logs.polled.failed(&error);
            }
        };
        for (tail, position) in tails.iter().zip(positions) {
            match heads.get(&tail.tenant) {
                Some(head) => drop(tail.note_head(head, position)),
                None => tail.mark_replaced(),
            }
        }
    }
    logs.polled.succeeded();
}

/// Every ring gets an equal part of `sync.ring_total_bytes`, and at most `sync.ring_max_bytes`.
fn share_memory(logs: &Logs) {
    let tails: Vec<Arc<Shared>> = logs.tails();
    let settings = &logs.parts().settings;
    let part = settings.ring_total_bytes / tails.len().max(1);
    for tail in &tails {
        tail.bound_ring(part.min(settings.ring_max_bytes));
    }
}
