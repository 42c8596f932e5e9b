//! Polls that wait for something to happen to their consumer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use agents::ConsumerKey;
use tokio::sync::watch;

/// The consumers for which a poll waits in this process.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    consumers: Mutex<HashMap<ConsumerKey, watch::Sender<()>>>,
}

/// One poll's place among the waiters. What happens after it was taken is never missed.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    waiters: &'a Waiters,
    key: &'a ConsumerKey,
    news: watch::Receiver<()>,
}

impl Waiters {
    pub(crate) fn enter<'a>(&'a self, key: &'a ConsumerKey) -> Waiter<'a> {
        let mut consumers = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        let news = consumers.entry(key.clone()).or_insert_with(|| watch::Sender::new(())).subscribe();
        Waiter { waiters: self, key, news }
    }

    /// The consumer was acknowledged or taken: polls that wait for it look again.
    pub(crate) fn wake(&self, key: &ConsumerKey) {
        if let Some(sender) = self.consumers.lock().unwrap_or_else(PoisonError::into_inner).get(key) {
            sender.send_replace(());
        }
    }
}

impl Waiter<'_> {
    /// Waits for news.
    pub(crate) async fn news(&mut self) {
        if self.news.changed().await.is_err() {
            // The sender lives as long as this place does.
            std::future::pending::<()>().await;
        }
    }

    /// Whether there are news that were not waited for.
    pub(crate) fn has_news(&mut self) -> bool {
        let news = self.news.has_changed().unwrap_or(false);
        self.news.mark_unchanged();
        news
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut consumers = self.waiters.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        // This place still counts as one.
        if consumers.get(self.key).is_some_and(|sender| sender.receiver_count() <= 1) {
            consumers.remove(self.key);
        }
    }
}
