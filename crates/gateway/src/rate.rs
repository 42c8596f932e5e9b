//! The allowance of frames of one connection (`gateway.max_frames_per_second`). Pure: time is passed in.

use std::time::Duration;

use tokio::time::Instant;

/// How much may come at once, as time at the allowed rate.
const BURST: Duration = Duration::from_secs(1);

/// A token bucket, kept as the instant at which it would be full again.
#[derive(Debug)]
pub(crate) struct FrameAllowance {
    each: Duration,
    full_at: Instant,
}

impl FrameAllowance {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        Self { each: Duration::from_secs(1) / per_second.max(1), full_at: now }
    }

    /// Takes one frame; answers whether it was allowed.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let next = self.full_at.max(now) + self.each;
        let allowed = next.duration_since(now) <= BURST;
        if allowed {
            self.full_at = next;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::FrameAllowance;

    #[test]
    fn a_second_full_of_frames_may_come_at_once_and_then_the_rate_holds() {
        let now = Instant::now();
        let mut allowance = FrameAllowance::new(10, now);
        assert_eq!((0..30).filter(|_| allowance.take(now)).count(), 10);
        let later = now + Duration::from_millis(250);
        assert_eq!((0..30).filter(|_| allowance.take(later)).count(), 2);
    }

    #[test]
    fn the_rate_itself_may_come_for_ever() {
        let mut now = Instant::now();
        let mut allowance = FrameAllowance::new(100, now);
        for _ in 0..10_000 {
            assert!(allowance.take(now));
            now += Duration::from_millis(10);
        }
    }
}
