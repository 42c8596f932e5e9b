//! What configuration says about items, and the arithmetic that follows from it. Pure.

use std::time::Duration;

use domain::{Priority, Timestamp};

/// The rules that every item lives by (configuration section `inbox`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long a lease lasts when the worker names nothing (`inbox.lease_default`).
    pub lease_default: Duration,
    /// The shortest lease (`inbox.lease_min`).
    pub lease_min: Duration,
    /// The longest lease or extension at once (`inbox.lease_max`).
    pub lease_max: Duration,
    /// From the claim: beyond it no heartbeat extends a lease (`inbox.attempt_deadline`).
    pub attempt_deadline: Duration,
    /// The first backoff after a failed attempt; it doubles with each (`inbox.retry_base`).
    pub retry_base: Duration,
    /// The longest backoff, and the longest `retry_after_seconds` (`inbox.retry_cap`).
    pub retry_cap: Duration,
    /// Counted attempts before an item becomes a dead letter, where the publisher names none (`inbox.max_attempts`).
    pub max_attempts: u32,
    /// By how much one step of priority puts an item before others that became available at the same time (`inbox.priority_boost`).
    pub priority_boost: Duration,
    /// Attempts that an item's history keeps, the latest (`inbox.history_max`).
    pub history_max: usize,
    /// Of those, the latest whose result is kept too (`inbox.results_kept`): results are large, and a worker looks at what was tried last.
    pub results_kept: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            lease_default: Duration::from_mins(2),
            lease_min: Duration::from_secs(1),
            lease_max: Duration::from_hours(1),
            attempt_deadline: Duration::from_hours(12),
            retry_base: Duration::from_secs(30),
            retry_cap: Duration::from_mins(15),
            max_attempts: 5,
            priority_boost: Duration::from_mins(5),
            history_max: 20,
            results_kept: 3,
        }
    }
}

impl Rules {
    /// The place among what is claimable of an item that becomes available at `available_at`: ascending, so that whoever waits long enough
    /// comes before everything newer, whatever its priority (inbox.md, "Order of claim").
    pub fn claim_key(&self, available_at: Timestamp, priority: Priority) -> Timestamp {
        let steps = match priority {
            Priority::Low => 0,
            Priority::Normal => 1,
            Priority::High => 2,
            Priority::Urgent => 3,
        };
        available_at.minus(self.priority_boost.saturating_mul(steps))
    }

    /// The lease that a worker gets who asks for `wanted`.
    pub fn lease(&self, wanted: Option<Duration>) -> Duration {
        wanted.unwrap_or(self.lease_default).clamp(self.lease_min, self.lease_max.max(self.lease_min))
    }

    /// How long an item rests after its `failures`th counted attempt: doubling, capped, with full jitter. `dice` is uniform over all of `u32`.
    pub fn backoff(&self, failures: u32, dice: u32) -> Duration {
        let doubled = self.retry_base.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
        let most = doubled.min(self.retry_cap).as_micros();
        // A product of less than 2^64 (a cap of half a million years) and 2^32: it fits.
        let share = most.saturating_mul(u128::from(dice)) / u128::from(u32::MAX);
        Duration::from_micros(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{Priority, Timestamp};

    use super::Rules;

    #[test]
    fn backoff_doubles_up_to_the_cap_and_jitter_takes_any_part_of_it() {
        let rules = Rules::default();
        let longest: Vec<u64> = (1..8).map(|failures| rules.backoff(failures, u32::MAX).as_secs()).collect();
        assert_eq!(longest, [30, 60, 120, 240, 480, 900, 900]);
        assert_eq!(rules.backoff(200, u32::MAX), rules.retry_cap);
        assert_eq!(rules.backoff(3, 0), Duration::ZERO);
    }

    #[test]
    fn whoever_waits_long_enough_comes_first_whatever_its_priority() {
        let rules = Rules::default();
        let start = Timestamp::from_micros(1_000_000_000_000);
        let low = rules.claim_key(start, Priority::Low);
        assert!(rules.claim_key(start, Priority::Urgent) < rules.claim_key(start, Priority::High));
        assert!(rules.claim_key(start, Priority::Normal) < low);
        let later = start.plus(rules.priority_boost * 3 + Duration::from_micros(1));
        assert!(low < rules.claim_key(later, Priority::Urgent));
    }

    #[test]
    fn a_lease_is_clamped() {
        let rules = Rules::default();
        assert_eq!(rules.lease(None), rules.lease_default);
        assert_eq!(rules.lease(Some(Duration::ZERO)), rules.lease_min);
        assert_eq!(rules.lease(Some(Duration::from_hours(99))), rules.lease_max);
    }
}
