//! What waits for a tail: batches that were just committed, and the advice to look at the store. Bounded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{Event, Seq};
use tokio::sync::Notify;

/// What became of an offered batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// It waits for the tail.
    Queued,
    /// There was no room: the tail will read the store.
    Dropped,
}

/// What a tail finds when it looks.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Consecutive events each, in the order of their commits as far as the committers kept it.
    pub(crate) batches: VecDeque<Vec<Arc<Event>>>,
    /// The store may have more than the batches.
    pub(crate) must_look: bool,
}

/// The mailbox of one tail. Offering never blocks for longer than handing over pointers.
#[derive(Debug)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    wake: Notify,
    max_events: usize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Waiting,
    events: usize,
    /// The highest position that was ever offered.
    offered: Seq,
}

impl Inbox {
    pub(crate) fn new(max_events: usize) -> Self {
        Self { queue: Mutex::default(), wake: Notify::new(), max_events }
    }

    /// Hands a batch over, whole or not at all.
    pub(crate) fn offer(&self, events: &[Arc<Event>]) -> Offer {
        let offer = self.with(|queue| {
            queue.offered = queue.offered.max(events.last().map_or(Seq::ZERO, |event| event.seq));
            // A single batch above the bound is taken when nothing else waits: its events are in memory anyway.
            if queue.events > 0 && queue.events + events.len() > self.max_events {
                queue.waiting.must_look = true;
                return Offer::Dropped;
            }
            queue.events += events.len();
            queue.waiting.batches.push_back(events.to_vec());
            Offer::Queued
        });
        self.wake.notify_one();
        offer
    }

    /// Makes the tail look at the store for what nobody has offered: `head` is known to be committed, or suspected to be.
    pub(crate) fn look_for(&self, head: Seq) {
        let is_news = self.with(|queue| {
            let is_news = head > queue.offered;
            queue.waiting.must_look |= is_news;
            is_news
        });
        if is_news {
            self.wake.notify_one();
        }
    }

    /// Everything that waits, as soon as something does. Cancel safe.
    pub(crate) async fn next(&self) -> Waiting {
        loop {
            let waiting = self.with(|queue| {
                queue.events = 0;
                std::mem::take(&mut queue.waiting)
            });
            if waiting.must_look || !waiting.batches.is_empty() {
                return waiting;
            }
            self.wake.notified().await;
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Queue) -> T) -> T {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
