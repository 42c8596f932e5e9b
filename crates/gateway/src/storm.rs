//! Damping of takeover storms: two holders of one consumer that replace each other for ever (design/stream.md, "Peace treaty").

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agents::ConsumerKey;
use tokio::time::Instant;

/// The span in which takeovers are counted.
const SPAN: Duration = Duration::from_mins(1);

/// Counts, per consumer, the takeovers from a holder that was attached.
#[derive(Debug)]
pub(crate) struct Storm {
    /// `agent.takeover_burst`.
    burst: usize,
    recent: Mutex<HashMap<ConsumerKey, VecDeque<Instant>>>,
}

impl Storm {
    pub(crate) fn new(burst: u32) -> Self {
        Self { burst: usize::try_from(burst).unwrap_or(usize::MAX).max(1), recent: Mutex::default() }
    }

    /// Counts a takeover of `key` at `now`, or says after how long one is allowed again.
    pub(crate) fn admit(&self, key: &ConsumerKey, now: Instant) -> Result<(), Duration> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let takeovers = recent.entry(key.clone()).or_default();
        while takeovers.pop_front_if(|at| *at + SPAN <= now).is_some() {}
        match takeovers.front() {
            Some(oldest) if takeovers.len() >= self.burst => Err(*oldest + SPAN - now),
            _ => {
                takeovers.push_back(now);
                Ok(())
            }
        }
    }

    /// Forgets what no longer counts.
    pub(crate) fn sweep(&self, now: Instant) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, takeovers| takeovers.back().is_some_and(|latest| *latest + SPAN > now));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use agents::ConsumerKey;
    use domain::{ConsumerName, PrincipalId, TenantId};
    use tokio::time::Instant;

    use super::{SPAN, Storm};

    fn key(name: &str) -> ConsumerKey {
        ConsumerKey {
            tenant: TenantId::parse("t").unwrap(),
            agent: PrincipalId::parse("a").unwrap(),
            name: ConsumerName::parse(name).unwrap(),
        }
    }

    #[test]
    fn more_takeovers_than_the_burst_within_a_minute_are_refused_until_the_oldest_is_a_minute_old() {
        let (storm, now) = (Storm::new(2), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(storm.admit(&key("a"), now), Ok(()));
        assert_eq!(storm.admit(&key("a"), now + second), Ok(()));
        assert_eq!(storm.admit(&key("a"), now + 2 * second), Err(SPAN - 2 * second));
        assert_eq!(storm.admit(&key("b"), now + 2 * second), Ok(()), "another consumer is another matter");
        assert_eq!(storm.admit(&key("a"), now + SPAN), Ok(()));
        assert_eq!(storm.admit(&key("a"), now + SPAN), Err(second));
    }

    #[test]
    fn quiet_consumers_are_forgotten() {
        let (storm, now) = (Storm::new(2), Instant::now());
        assert_eq!(storm.admit(&key("a"), now), Ok(()));
        storm.sweep(now + SPAN / 2);
        assert_eq!(storm.recent.lock().unwrap().len(), 1);
        storm.sweep(now + SPAN);
        assert_eq!(storm.recent.lock().unwrap().len(), 0);
    }
}
