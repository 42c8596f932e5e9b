//! A clock that moves only when a test moves it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use domain::{Clock, Timestamp};

/// A clock turned by hand.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Starts at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_micros()))
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).expect("a test's duration"), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new(Timestamp::parse("2026-07-12T16:00:00Z").expect("a valid date"))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}
