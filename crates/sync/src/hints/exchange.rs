//! The hints of one node: what waits to be told, who listens. Adapters carry the texts.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use domain::{Counter, Gauge, NodeId};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::queue::{HintQueue, Queued};
use super::{Hint, HintBus, HintListener, wire};

/// Bounds of telling. The field documentation names the configuration key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintSettings {
    /// `cluster.hint_interval`: at most once in this time something is told.
    pub interval: Duration,
    /// `cluster.hint_queue_max`: hints that may wait; beyond, new ones are forgotten.
    pub queue_max: usize,
}

impl Default for HintSettings {
    fn default() -> Self {
        Self { interval: Duration::from_millis(5), queue_max: 10_000 }
    }
}

/// What hints count.
#[derive(Debug, Default)]
pub struct HintMetrics {
    /// Hints that wait or were told, each once.
    pub told: Counter,
    /// Hints that another one said too.
    pub merged: Counter,
    /// Hints that were forgotten: too many waited, or they could not be carried.
    pub dropped: Counter,
    /// Statements or messages that carried hints to others.
    pub sends: Counter,
    /// Sends that failed.
    pub send_failures: Counter,
    /// Hints heard from other nodes.
    pub heard: Counter,
    /// Texts that were not understood.
    pub unknown: Counter,
    /// Whether others are heard at the moment: 1 or 0.
    pub listening: Gauge,
    /// How often listening was taken up again after it had ended.
    pub reconnects: Counter,
}

/// Gathers what a node tells, and hands on what others tell. Whoever carries hints between nodes calls [`HintExchange::next`] and
/// [`HintExchange::received`]; until somebody does, hints wait and are merged.
pub struct HintExchange {
    node: NodeId,
    settings: HintSettings,
    queue: Mutex<HintQueue>,
    waiting: Notify,
    told_at: Mutex<Option<Instant>>,
    listeners: RwLock<Vec<Weak<dyn HintListener>>>,
    metrics: HintMetrics,
}

impl fmt::Debug for HintExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HintExchange").field("node", &self.node).field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl HintExchange {
    /// The hints of `node`. Nobody listens yet, nothing is carried yet.
    pub fn new(node: NodeId, settings: HintSettings) -> Arc<Self> {
        Arc::new(Self {
            node,
            settings,
            queue: Mutex::new(HintQueue::new(settings.queue_max)),
            waiting: Notify::new(),
            told_at: Mutex::default(),
            listeners: RwLock::default(),
            metrics: HintMetrics::default(),
        })
    }

    /// From now on `listener` hears what other nodes tell, for as long as somebody else keeps it.
    pub fn listen(&self, listener: Weak<dyn HintListener>) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// What was counted.
    pub fn metrics(&self) -> &HintMetrics {
        &self.metrics
    }

    /// Texts of at most `max_bytes` each, to be carried to all other nodes now: as soon as there is something to tell, and at least `cluster.hint_interval`
    /// after the last. Never empty. For one carrier; cancel safe.
    pub async fn next(&self, max_bytes: usize) -> Vec<String> {
        loop {
            let hints = self.due().await;
            let texts = wire::encode(self.node, &hints, max_bytes);
            if !texts.is_empty() {
                self.metrics.sends.increment();
                return texts;
            }
        }
    }

    /// Hints that could not be carried are forgotten: others find out by themselves.
    pub fn lost(&self) {
        self.metrics.send_failures.increment();
    }

    async fn due(&self) -> Vec<Hint> {
        loop {
            if self.queue(|queue| queue.is_empty()) {
                self.waiting.notified().await;
                continue;
            }
            let told_at = *self.told_at.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(told_at) = told_at {
                sleep_until(told_at + self.settings.interval).await;
            }
            *self.told_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            return self.queue(HintQueue::take);
        }
    }

    fn queue<T>(&self, act: impl FnOnce(&mut HintQueue) -> T) -> T {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another node's text, or one of its own, which is ignored.
    pub fn received(&self, text: &str) {
        let Some((sender, hints)) = wire::decode(text) else { return self.metrics.unknown.increment() };
        if sender == self.node {
            return;
        }
        self.metrics.heard.add(hints.len() as u64);
        let listeners: Vec<Arc<dyn HintListener>> =
            self.listeners.read().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
        for hint in &hints {
            for listener in &listeners {
                listener.heard(hint);
            }
        }
    }
}

impl HintBus for HintExchange {
    fn tell(&self, hint: Hint) {
        match self.queue(|queue| queue.push(hint)) {
            Queued::New => {
                self.metrics.told.increment();
                self.waiting.notify_one();
            }
            Queued::Merged => self.metrics.merged.increment(),
            Queued::Dropped => self.metrics.dropped.increment(),
        }
    }
}
