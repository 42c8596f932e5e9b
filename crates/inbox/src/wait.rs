//! Waiting for work: a place at the bell while the tenant's tail runs. It is taken before the look at the store that decides to wait, so that
//! nothing falls between the look and the wait.

use std::sync::Arc;
use std::time::Duration;

use authz::Caller;
use tokio::time::{Instant, sleep_until};

use crate::bells::{Waiter, Woken};
use crate::{Inbox, Metrics, Recipient};

/// A wait under way.
pub(crate) struct Wait {
    waiter: Waiter,
    ends_at: Instant,
    /// When the caller's token ends: whoever waits then is asked for its standing.
    expires_at: Option<Instant>,
    resumed: u64,
    metrics: Arc<Metrics>,
    _tail: Box<dyn Send + Sync>,
}

/// Why it is looked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// The bell rang, or the caller's token has ended.
    Rung,
    /// Something is due now.
    Due,
    /// The wait is over: a last look, because a hint may have been lost.
    Last,
    /// Every wait ends: answer at once.
    Drained,
}

impl Inbox {
    /// Begins a wait of `caller` for its inbox, of at most `wait` from `since`; `None` when it is not to be waited: not asked for, the house is
    /// full, the process drains, or no tail runs.
    pub(crate) async fn wait(&self, caller: &Caller, recipient: &Recipient, wait: Duration, since: Instant) -> Option<Wait> {
        let wait = wait.min(self.settings().poll_wait_max);
        if wait.is_zero() || self.bells.is_drained() {
            return None;
        }
        let waiter = self.bells.enter(recipient).ok()?;
        match self.parts.tails.keep(&recipient.tenant).await {
            Ok(tail) => {
                let (ends_at, expires_at) = (since + wait, self.end_of_token(caller));
                Some(Wait { waiter, ends_at, expires_at, resumed: 0, metrics: Arc::clone(&self.parts.metrics), _tail: tail })
            }
            Err(error) => {
                tracing::warn!(tenant.id = %recipient.tenant, error = %error, "a wait is answered at once, because the log cannot be followed");
                None
            }
        }
    }

    /// When the token of a caller has ended, on the clock that waits go by.
    pub(crate) fn end_of_token(&self, caller: &Caller) -> Option<Instant> {
        let end = caller.expires_at?.since(self.parts.clock.now());
        Instant::now().checked_add(end.saturating_add(Duration::from_millis(1)))
    }
}

impl Drop for Wait {
    /// A wait counts when it is over, so that it is never counted as one with an outcome before it has one.
    fn drop(&mut self) {
        self.metrics.long_polls.increment();
    }
}

impl Wait {
    /// To be called before each look: what rings from now on ends the next [`Wait::again`]. Answers whether a pause or an absence has ended since
    /// the last look, so that what was left out then may be there now.
    pub(crate) fn begin_look(&mut self) -> bool {
        let resumed = self.waiter.look().resumed;
        std::mem::replace(&mut self.resumed, resumed) != resumed
    }

    /// Waits for a ring since the last look, until something is due in `due`, until the caller's token ends, or for the end.
    pub(crate) async fn again(&mut self, due: Option<Duration>) -> Again {
        let due = due.map(|due| Instant::now() + due).filter(|due| *due < self.ends_at);
        let (at, why) = due.map_or((self.ends_at, Again::Last), |due| (due, Again::Due));
        let (at, why) = self.expires_at.filter(|end| *end < at).map_or((at, why), |end| (end, Again::Rung));
        tokio::select! {
            biased;
            woken = self.waiter.woken() => if woken == Woken::Rung { Again::Rung } else { Again::Drained },
            () = sleep_until(at) => why,
        }
    }
}
