//! Time and identity as dependencies, so that rules can be tested without waiting and without luck.

use std::time::Instant;

use uuid::Uuid;

use crate::Timestamp;

/// Where instants come from.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Now, in UTC. Never earlier than an instant this clock has given before.
    fn now(&self) -> Timestamp;
}

/// Where new identifiers come from.
pub trait IdGenerator: Send + Sync + std::fmt::Debug {
    /// A fresh UUIDv7: ordered by creation time.
    fn uuid(&self) -> Uuid;
}

/// Wall time anchored once to the monotonic clock, so that a step of the wall clock never moves a deadline.
///
/// The anchor follows the wall clock slowly: each reading closes at most one part in [`SystemClock::SLEW`] of the elapsed time.
#[derive(Debug)]
pub struct SystemClock {
    state: std::sync::Mutex<ClockState>,
}

#[derive(Debug)]
struct ClockState {
    read_at: Instant,
    given: i64,
}

impl SystemClock {
    /// The share of the elapsed time by which the clock runs faster or slower to meet the wall clock again.
    pub const SLEW: i64 = 20;

    /// Starts at the wall clock's present reading.
    pub fn new() -> Self {
        Self { state: std::sync::Mutex::new(ClockState { read_at: Self::monotonic(), given: Self::wall() }) }
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where the process reads the wall clock")]
    fn wall() -> i64 {
        let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX)
    }

    fn monotonic() -> Instant {
        Instant::now()
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let instant = Self::monotonic();
        let elapsed = i64::try_from(instant.duration_since(state.read_at).as_micros()).unwrap_or(i64::MAX);
        state.given = slewed(state.given, elapsed, Self::wall());
        state.read_at = instant;
        Timestamp::from_micros(state.given)
    }
}

/// The next reading: `elapsed` after `given`, moved towards `wall` by at most a [`SystemClock::SLEW`]th of `elapsed`.
fn slewed(given: i64, elapsed: i64, wall: i64) -> i64 {
    let expected = given.saturating_add(elapsed);
    let most = elapsed / SystemClock::SLEW;
    expected.saturating_add(wall.saturating_sub(expected).clamp(-most, most))
}

/// UUIDv7 from the system's clock and random source.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemIds;

impl IdGenerator for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "the one place where the process makes identifiers")]
    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }
}

#[cfg(test)]
mod tests {
    use super::slewed;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_step_of_the_wall_clock_moves_no_deadline() {
        for wall in [HOUR, -HOUR] {
            let next = slewed(0, 1_000_000, wall);
            assert!((950_000..=1_050_000).contains(&next), "{next}");
        }
    }

    #[test]
    fn time_never_runs_backwards_and_meets_the_wall_clock() {
        let (mut given, mut wall) = (HOUR, 0);
        for _ in 0..1_000_000 {
            wall += 1_000_000;
            let next = slewed(given, 1_000_000, wall);
            assert!(next >= given);
            given = next;
        }
        assert_eq!(given, wall);
    }
}
