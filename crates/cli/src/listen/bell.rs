//! Between whoever hears rings and whoever acts on them: rings that come while one is acted on become one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

/// Rings that wait to be printed, where there is no command.
const WAITING_MAX: usize = 1024;

/// A ring that was verified.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// `webhook-id`.
    pub(super) id: String,
    /// The body on one line.
    pub(super) text: String,
    body: Value,
}

impl Ring {
    pub(super) fn new(id: &str, body: &str) -> Self {
        let value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        let text = if value.is_null() { body.to_owned() } else { value.to_string() };
        Self { id: id.to_owned(), text, body: value }
    }

    /// A text member of the body; empty where there is none.
    pub(super) fn member(&self, name: &str) -> &str {
        self.body.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Where rings are put.
#[derive(Debug)]
pub(super) struct Bell(Arc<Shared>);

/// Where they are taken.
#[derive(Debug)]
pub(super) struct Rings(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Option<VecDeque<Ring>>>,
    rung: Notify,
}

/// A bell and its listener.
pub(super) fn new() -> (Bell, Rings) {
    let shared = Arc::new(Shared { waiting: Mutex::new(Some(VecDeque::new())), rung: Notify::new() });
    (Bell(Arc::clone(&shared)), Rings(shared))
}

impl Bell {
    /// Rings; `false` when nobody listens any more.
    pub(super) fn ring(&self, ring: Ring) -> bool {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(waiting) = waiting.as_mut() else { return false };
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back(ring);
        self.0.rung.notify_one();
        true
    }
}

impl Rings {
    /// What has rung since the last time; waits until something has. Cancel safe.
    pub(super) async fn take(&mut self) -> Vec<Ring> {
        loop {
            let rung = self.0.rung.notified();
            {
                let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(waiting) = waiting.as_mut().filter(|waiting| !waiting.is_empty()) {
                    return waiting.drain(..).collect();
                }
            }
            rung.await;
        }
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
