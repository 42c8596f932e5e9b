//! Carries hints between nodes that live in one process.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::HintExchange;

/// Larger than what any carrier between processes takes, so that nothing is split here that is not split there.
const MAX_BYTES: usize = 64 * 1024;

/// The nodes of one process: what one tells, the others hear. An embedded store has one node, which has nobody to tell.
#[derive(Default)]
pub struct InOneProcess {
    nodes: Arc<Mutex<Vec<Arc<HintExchange>>>>,
}

impl fmt::Debug for InOneProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InOneProcess").finish_non_exhaustive()
    }
}

impl InOneProcess {
    /// From now on, until `cancel`, the node tells the others and hears them.
    pub fn join(&self, exchange: Arc<HintExchange>, tracker: &TaskTracker, cancel: CancellationToken) {
        let nodes = Arc::clone(&self.nodes);
        lock(&nodes).push(Arc::clone(&exchange));
        exchange.metrics().listening.set(1);
        tracker.spawn(async move {
            let carrying = async {
                loop {
                    let texts = exchange.next(MAX_BYTES).await;
                    let others = lock(&nodes).clone();
                    for text in &texts {
                        for each in &others {
                            each.received(text);
                        }
                    }
                }
            };
            cancel.run_until_cancelled(carrying).await;
            lock(&nodes).retain(|each| !Arc::ptr_eq(each, &exchange));
            exchange.metrics().listening.set(0);
        });
    }
}

fn lock(nodes: &Mutex<Vec<Arc<HintExchange>>>) -> std::sync::MutexGuard<'_, Vec<Arc<HintExchange>>> {
    nodes.lock().unwrap_or_else(PoisonError::into_inner)
}
