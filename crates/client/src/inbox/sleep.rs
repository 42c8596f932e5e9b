//! Noticing that the machine has slept: the monotonic clock of most systems stands still meanwhile, the wall clock does not.

use std::time::Duration;

use tokio::time::Instant;

/// How far the wall clock has to be ahead before it counts.
const LEAP: Duration = Duration::from_secs(3);

/// Compares the clocks from time to time. A hint and no more: what it triggers does no harm when somebody has only set the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct SleepWatch {
    monotonic: Instant,
    wall: std::time::SystemTime,
}

impl SleepWatch {
    pub(super) fn start() -> Self {
        Self { monotonic: Instant::now(), wall: wall() }
    }

    /// Whether the wall clock went ahead since the last call.
    pub(super) fn has_slept(&mut self, now: Instant) -> bool {
        let awake = now.saturating_duration_since(self.monotonic);
        let wall = wall();
        let passed = wall.duration_since(self.wall).unwrap_or_default();
        (self.monotonic, self.wall) = (now, wall);
        passed > awake + LEAP
    }
}

#[expect(clippy::disallowed_methods, reason = "only the wall clock goes on while the machine sleeps; nothing is decided by it")]
fn wall() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::SleepWatch;

    #[test]
    fn the_machine_has_slept_when_the_wall_clock_ran_ahead() {
        let now = Instant::now();
        let mut watch = SleepWatch::start();
        assert!(!watch.has_slept(now + Duration::from_millis(10)));
        watch.wall -= Duration::from_mins(1);
        assert!(watch.has_slept(now + Duration::from_millis(20)));
        assert!(!watch.has_slept(now + Duration::from_millis(30)), "once");
    }

    #[test]
    fn a_wall_clock_that_was_set_back_is_no_sleep() {
        let mut watch = SleepWatch::start();
        watch.wall += Duration::from_hours(1);
        assert!(!watch.has_slept(Instant::now()));
    }
}
