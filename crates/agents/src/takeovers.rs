//! Damps takeover storms: two programs that take one consumer from each other again and again (design/stream.md, "Peace treaty").

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::{ConsumerKey, Holder};

const WINDOW: Duration = Duration::from_mins(1);
/// Below this many entries nothing is swept.
const SWEEP_FROM: usize = 1_024;

/// Counts, per consumer, how often it was lately taken from a holder that was still attached, as far as this process knows. Pure: time is passed in.
///
/// What has been quiet for a minute is forgotten.
#[derive(Debug)]
pub(crate) struct Takeovers {
    burst: usize,
    consumers: HashMap<ConsumerKey, Lately>,
    sweep_at: usize,
}

#[derive(Debug)]
struct Lately {
    holder: Holder,
    is_attached: bool,
    touched: Instant,
    takeovers: VecDeque<Instant>,
}

impl Takeovers {
    pub(crate) fn new(burst: u32) -> Self {
        Self { burst: usize::try_from(burst).unwrap_or(usize::MAX), consumers: HashMap::new(), sweep_at: SWEEP_FROM }
    }

    /// How long `holder` has to wait before it may take the consumer; `None` when it may now.
    pub(crate) fn refusal(&self, key: &ConsumerKey, holder: Holder, now: Instant) -> Option<Duration> {
        let lately = self.consumers.get(key).filter(|lately| lately.is_attached && lately.holder != holder)?;
        let recent = lately.takeovers.iter().filter(|at| now.duration_since(**at) < WINDOW);
        if recent.clone().count() < self.burst {
            return None;
        }
        let oldest = recent.min().copied().unwrap_or(now);
        Some((oldest + WINDOW).duration_since(now))
    }

    /// `holder` took the consumer; before, `previous` held it.
    pub(crate) fn note(&mut self, key: ConsumerKey, holder: Holder, previous: Option<Holder>, now: Instant) {
        self.sweep(now);
        let lately = self.consumers.entry(key).or_insert_with(|| Lately {
            holder: previous.unwrap_or(holder),
            is_attached: true,
            touched: now,
            takeovers: VecDeque::new(),
        });
        let previous_detached = previous == Some(lately.holder) && !lately.is_attached;
        if previous.is_some_and(|previous| previous != holder) && !previous_detached {
            lately.takeovers.push_back(now);
            // More than the burst are never asked for.
            lately.takeovers.drain(..lately.takeovers.len().saturating_sub(self.burst.max(1)));
        }
        (lately.holder, lately.is_attached, lately.touched) = (holder, true, now);
    }

    /// `holder` went by itself.
    pub(crate) fn detached(&mut self, key: &ConsumerKey, holder: Holder, now: Instant) {
        if let Some(lately) = self.consumers.get_mut(key).filter(|lately| lately.holder == holder) {
            (lately.is_attached, lately.touched) = (false, now);
        }
    }

    fn sweep(&mut self, now: Instant) {
        if self.consumers.len() < self.sweep_at {
            return;
        }
        self.consumers.retain(|_, lately| now.duration_since(lately.touched) < WINDOW);
        self.sweep_at = self.consumers.len().saturating_mul(2).max(SWEEP_FROM);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{ConsumerName, PrincipalId, TenantId};
    use tokio::time::Instant;

    use super::{SWEEP_FROM, Takeovers};
    use crate::{ConsumerKey, Holder};

    fn key(agent: &str) -> ConsumerKey {
        ConsumerKey { tenant: TenantId::parse("t").unwrap(), agent: PrincipalId::parse(agent).unwrap(), name: ConsumerName::default() }
    }

    fn session(number: u64) -> Holder {
        Holder::Gateway(format!("00000000-0000-0000-0000-{number:012}").parse().unwrap())
    }

    /// Sessions take the consumer from each other, one a second; answers how many got it and how long the first refused one has to wait.
    fn storm(takeovers: &mut Takeovers, start: Instant, detach: bool) -> (u64, Option<Duration>) {
        for number in 0..100 {
            let now = start + Duration::from_secs(number);
            if let Some(wait) = takeovers.refusal(&key("a"), session(number), now) {
                return (number, Some(wait));
            }
            takeovers.note(key("a"), session(number), number.checked_sub(1).map(session), now);
            if detach {
                takeovers.detached(&key("a"), session(number), now);
            }
        }
        (100, None)
    }

    #[test]
    fn a_consumer_taken_from_attached_holders_too_often_is_refused_for_a_while() {
        let (mut takeovers, start) = (Takeovers::new(10), Instant::now());
        // The first take is none; takes 1 to 10 are takeovers.
        assert_eq!(storm(&mut takeovers, start, false), (11, Some(Duration::from_secs(50))));
        let now = start + Duration::from_secs(11);
        assert_eq!(takeovers.refusal(&key("a"), session(10), now), None, "who holds it goes on");
        assert_eq!(takeovers.refusal(&key("b"), session(11), now), None, "another consumer is not concerned");
        assert_eq!(takeovers.refusal(&key("a"), session(11), start + Duration::from_secs(61)), None, "a minute later it may");
    }

    #[test]
    fn a_holder_that_went_by_itself_makes_no_storm() {
        let (mut takeovers, start) = (Takeovers::new(10), Instant::now());
        assert_eq!(storm(&mut takeovers, start, true), (100, None));
    }

    #[test]
    fn what_has_been_quiet_for_a_minute_is_forgotten() {
        let (mut takeovers, start) = (Takeovers::new(10), Instant::now());
        for number in 0..5_000_u64 {
            takeovers.note(key(&format!("a{number}")), Holder::Rest, None, start + Duration::from_secs(number));
        }
        assert!(takeovers.consumers.len() <= SWEEP_FROM + 60, "{}", takeovers.consumers.len());
    }
}
