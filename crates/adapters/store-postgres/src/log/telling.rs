//! Commits of a log are told of in their order. A transaction takes its place while it holds the head row, so that places are taken in the order of
//! the commits, and leaves it when it has told, or is over. What waits for a place holds nothing that whoever has it could need.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

type Place = Arc<tokio::sync::Mutex<()>>;

/// The places of all logs that are appended to now.
#[derive(Default)]
pub(crate) struct Tellings {
    places: Mutex<HashMap<i64, Place>>,
}

/// The place of one log, until this is dropped.
pub(crate) struct Telling {
    tellings: Arc<Tellings>,
    number: i64,
    place: Option<OwnedMutexGuard<()>>,
}

impl Tellings {
    fn places(&self) -> MutexGuard<'_, HashMap<i64, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the place of the log with this number.
    pub(crate) async fn take(self: &Arc<Self>, number: i64) -> Telling {
        let place = Arc::clone(self.places().entry(number).or_default());
        Telling { tellings: Arc::clone(self), number, place: Some(place.lock_owned().await) }
    }
}

impl Telling {
    /// The log's number.
    pub(crate) const fn number(&self) -> i64 {
        self.number
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.place = None;
        let mut places = self.tellings.places();
        // Nobody has it and nobody waits for it: those who do are counted.
        if places.get(&self.number).is_some_and(|place| Arc::strong_count(place) == 1) {
            places.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_tells_of_a_log_at_a_time_in_turn_and_nothing_is_kept() {
        let tellings = Arc::new(Tellings::default());
        let first = tellings.take(7).await;
        let other = tellings.take(8).await;
        let mut second = std::pin::pin!(tellings.take(7));
        let mut third = std::pin::pin!(tellings.take(7));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        assert!(futures_util::poll!(third.as_mut()).is_pending());
        drop(first);
        assert!(futures_util::poll!(third.as_mut()).is_pending(), "it came later");
        let second = second.await;
        drop((second, other));
        drop(third.await);
        assert!(tellings.places().is_empty());
    }
}
