//! Pauses between attempts: exponential with full jitter, so that clients which lost the same server do not return together.

use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

/// How pauses grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffOptions {
    /// The ceiling of the first pause.
    pub base: Duration,
    /// The ceiling that pauses grow to.
    pub cap: Duration,
    /// How long a connection has to last before the next pause is a first one again.
    pub stable_after: Duration,
}

impl Default for BackoffOptions {
    fn default() -> Self {
        Self { base: Duration::from_millis(200), cap: Duration::from_secs(30), stable_after: Duration::from_secs(10) }
    }
}

/// Counts attempts and says how long to pause before the next.
#[derive(Debug)]
pub struct Backoff {
    options: BackoffOptions,
    attempt: u32,
}

impl Backoff {
    /// Starts before the first attempt.
    pub const fn new(options: BackoffOptions) -> Self {
        Self { options, attempt: 0 }
    }

    /// The pause before the next attempt: anything from nothing to a ceiling that doubles each time.
    pub fn next_pause(&mut self) -> Duration {
        self.pause_with(random())
    }

    /// The first pause again comes next.
    pub fn reset(&mut self) {
        self.attempt = 0;
    }

    /// Starts over when the connection that just ended had lasted.
    pub(crate) fn after_connection(&mut self, lasted: Duration) {
        if lasted >= self.options.stable_after {
            self.reset();
        }
    }

    fn pause_with(&mut self, random: u64) -> Duration {
        let ceiling = self.options.base.saturating_mul(2_u32.saturating_pow(self.attempt)).min(self.options.cap);
        self.attempt = self.attempt.saturating_add(1);
        scaled(ceiling, random)
    }
}

/// Anything from nothing to `ceiling`.
pub(crate) fn jitter(ceiling: Duration) -> Duration {
    scaled(ceiling, random())
}

fn scaled(ceiling: Duration, random: u64) -> Duration {
    let nanos = (u128::from(random) * ceiling.as_nanos()) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Without randomness pauses are as long as they may be, which is safe for the server.
fn random() -> u64 {
    let mut bytes = [0; 8];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Backoff, BackoffOptions};

    const OPTIONS: BackoffOptions =
        BackoffOptions { base: Duration::from_secs(1), cap: Duration::from_secs(10), stable_after: Duration::from_secs(5) };

    fn seconds(pauses: impl IntoIterator<Item = Duration>) -> Vec<u128> {
        pauses.into_iter().map(|pause| (pause.as_millis() + 500) / 1000).collect()
    }

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let mut backoff = Backoff::new(OPTIONS);
        assert_eq!(seconds((0..6).map(|_| backoff.pause_with(u64::MAX))), [1, 2, 4, 8, 10, 10]);
    }

    #[test]
    fn jitter_is_full_from_nothing_to_the_ceiling() {
        let mut backoff = Backoff::new(OPTIONS);
        assert_eq!(backoff.pause_with(0), Duration::ZERO);
        assert_eq!(seconds([backoff.pause_with(u64::MAX / 2)]), [1]);
    }

    #[test]
    fn the_number_of_attempts_never_overflows() {
        let mut backoff = Backoff::new(OPTIONS);
        backoff.attempt = u32::MAX;
        assert_eq!(seconds([backoff.pause_with(u64::MAX), backoff.pause_with(u64::MAX)]), [10, 10]);
    }

    #[test]
    fn a_short_connection_does_not_start_over() {
        let mut backoff = Backoff::new(OPTIONS);
        backoff.pause_with(0);
        backoff.after_connection(Duration::from_secs(4));
        assert_eq!(seconds([backoff.pause_with(u64::MAX)]), [2]);
        backoff.after_connection(Duration::from_secs(5));
        assert_eq!(seconds([backoff.pause_with(u64::MAX)]), [1]);
    }
}
