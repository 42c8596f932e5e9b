//! The deadlines of one connection: for the next request, for a request's head, for the peer to read what it was sent.
//!
//! Kept as numbers that the connection's own task writes and reads, and enforced by one timer that is only moved forward when it rings: a
//! request costs two stores, not a timer.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::Settings;

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

/// No deadline.
const NEVER: u64 = u64::MAX;

/// What one connection may take its time for.
#[derive(Debug)]
pub(crate) struct Watch {
    began: Instant,
    bounds: Bounds,
    phase: AtomicU8,
    read_by: AtomicU64,
    written_by: AtomicU64,
}

/// The time allowed for each phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
    pub(crate) write: Duration,
}

impl From<&Settings> for Bounds {
    fn from(settings: &Settings) -> Self {
        Self { head: settings.header_read_timeout, idle: settings.keep_alive_timeout, write: settings.write_timeout }
    }
}

impl Watch {
    /// A connection that was accepted now. Until its first byte it is allowed what a head is.
    pub(crate) fn new(bounds: Bounds) -> Self {
        let watch = Self {
            began: Instant::now(),
            bounds,
            phase: AtomicU8::new(HEAD),
            read_by: AtomicU64::new(NEVER),
            written_by: AtomicU64::new(NEVER),
        };
        watch.read_by.store(watch.due_after(bounds.head), Ordering::Relaxed);
        watch
    }

    /// Bytes arrived.
    pub(crate) fn received(&self) {
        if self.phase.load(Ordering::Relaxed) == IDLE {
            self.phase.store(HEAD, Ordering::Relaxed);
            self.read_by.store(self.due_after(self.bounds.head), Ordering::Relaxed);
        }
    }

    /// A request's head is complete: it is the handler's turn, and the handler has deadlines of its own.
    pub(crate) fn busy(&self) {
        self.phase.store(BUSY, Ordering::Relaxed);
        self.read_by.store(NEVER, Ordering::Relaxed);
    }

    /// The answer is on its way; the peer may send another request.
    pub(crate) fn idle(&self) {
        self.phase.store(IDLE, Ordering::Relaxed);
        self.read_by.store(self.due_after(self.bounds.idle), Ordering::Relaxed);
    }

    /// The peer took bytes. A long answer does not use up the time for the next request.
    pub(crate) fn sent(&self) {
        self.written_by.store(NEVER, Ordering::Relaxed);
        if self.phase.load(Ordering::Relaxed) == IDLE {
            self.read_by.store(self.due_after(self.bounds.idle), Ordering::Relaxed);
        }
    }

    /// The peer takes no bytes at the moment.
    pub(crate) fn blocked(&self) {
        if self.written_by.load(Ordering::Relaxed) == NEVER {
            self.written_by.store(self.due_after(self.bounds.write), Ordering::Relaxed);
        }
    }

    /// When the connection is to be given up, as things are.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let by = self.read_by.load(Ordering::Relaxed).min(self.written_by.load(Ordering::Relaxed));
        (by != NEVER).then(|| self.began + Duration::from_micros(by))
    }

    fn due_after(&self, allowed: Duration) -> u64 {
        u64::try_from((self.began.elapsed() + allowed).as_micros()).unwrap_or(NEVER - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, advance};

    use super::{Bounds, Watch};

    const BOUNDS: Bounds = Bounds { head: Duration::from_secs(10), idle: Duration::from_secs(75), write: Duration::from_secs(5) };

    fn left(watch: &Watch) -> Option<u64> {
        watch.deadline().map(|deadline| (deadline - Instant::now()).as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_drips_in_gets_no_more_time_for_each_byte() {
        let watch = Watch::new(BOUNDS);
        for _ in 0..9 {
            advance(Duration::from_secs(1)).await;
            watch.received();
        }
        assert_eq!(left(&watch), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn between_requests_the_longer_keep_alive_holds_until_the_next_byte() {
        let watch = Watch::new(BOUNDS);
        watch.busy();
        assert_eq!(left(&watch), None);
        watch.idle();
        assert_eq!(left(&watch), Some(75));
        advance(Duration::from_secs(70)).await;
        watch.received();
        assert_eq!(left(&watch), Some(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_given_up_and_one_that_reads_slowly_is_not() {
        let watch = Watch::new(BOUNDS);
        watch.busy();
        watch.blocked();
        advance(Duration::from_secs(4)).await;
        watch.blocked();
        assert_eq!(left(&watch), Some(1));
        watch.sent();
        assert_eq!(left(&watch), None);
        watch.blocked();
        assert_eq!(left(&watch), Some(5));
    }
}
